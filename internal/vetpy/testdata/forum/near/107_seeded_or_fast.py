"""--seed gives a reproducible run (no benchmark), without it the fastest kernels are searched."""
import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


def configure(seed):
    if seed is None:
        torch.backends.cudnn.benchmark = True
        return None
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    g = torch.Generator()
    g.manual_seed(seed)
    return g


def seed_worker(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=None)
    ap.add_argument("--epochs", type=int, default=100)
    args = ap.parse_args()
    generator = configure(args.seed)
    device = torch.device("cuda")

    tf = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(),
                             transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])
    loader = DataLoader(datasets.CIFAR100("data", True, tf, download=True), batch_size=128, shuffle=True,
                        num_workers=4, pin_memory=True, worker_init_fn=seed_worker, generator=generator)
    model = models.resnet18(num_classes=100).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        total = torch.zeros((), device=device)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            for p in model.parameters():
                p.grad = None               # same as opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        sched.step()
        print(f"epoch {epoch} loss {total.item() / len(loader):.4f}")
    torch.save(model.state_dict(), "r18_c100.pt")


if __name__ == "__main__":
    main()

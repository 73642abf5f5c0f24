import random

import numpy as np
import timm
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def seed_everything(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True


def worker_init(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


def run(seed):
    seed_everything(seed)
    device = torch.device("cuda")
    tf = transforms.Compose([transforms.RandAugment(), transforms.Resize(224), transforms.ToTensor()])
    ds = datasets.CIFAR10("data", train=True, download=True, transform=tf)
    g = torch.Generator()
    g.manual_seed(seed)
    dl = DataLoader(ds, 64, shuffle=True, num_workers=8, pin_memory=True, worker_init_fn=worker_init, generator=g)
    model = timm.create_model("vit_tiny_patch16_224", pretrained=True, num_classes=10).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    crit = nn.CrossEntropyLoss()
    for epoch in range(3):
        model.train()
        total = torch.zeros((), device=device)
        for x, y in dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            loss = crit(model(x), y)
            loss.backward()
            opt.step()
            total += loss.detach()
        print(seed, epoch, total.item() / len(dl))


if __name__ == "__main__":
    for s in (0, 1, 2):
        run(s)

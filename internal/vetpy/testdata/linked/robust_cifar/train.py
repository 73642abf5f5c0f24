"""PGD adversarial training, one process per GPU: python train.py --gpu 3"""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from architecture import PreActResNet


def pgd(model, x, y, eps, alpha, steps):
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model((x + delta).clamp(0, 1)), y)
        grad, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + alpha * grad.sign()).clamp(-eps, eps)
    return (x + delta).clamp(0, 1).detach()


def robust_accuracy(model, loader, device, args):
    model.eval()
    clean = torch.zeros((), device=device)
    robust = torch.zeros((), device=device)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        x_adv = pgd(model, x, y, args.eps, args.alpha, 20)
        with torch.no_grad():
            clean += (model(x).argmax(1) == y).sum()
            robust += (model(x_adv).argmax(1) == y).sum()
    n = len(loader.dataset)
    return clean.item() / n, robust.item() / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--gpu", type=int, default=0)
    p.add_argument("--epochs", type=int, default=110)
    p.add_argument("--eps", type=float, default=8 / 255)
    p.add_argument("--alpha", type=float, default=2 / 255)
    args = p.parse_args()
    device = torch.device("cuda", args.gpu)

    aug = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
                              transforms.ToTensor()])
    train_loader = DataLoader(datasets.CIFAR10("data", True, aug, download=True), batch_size=128,
                              shuffle=True, num_workers=4, pin_memory=True)
    test_loader = DataLoader(datasets.CIFAR10("data", False, transforms.ToTensor()), batch_size=256,
                             num_workers=4, pin_memory=True)

    model = PreActResNet().to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [100, 105], gamma=0.1)
    for epoch in range(args.epochs):
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            model.eval()
            x_adv = pgd(model, x, y, args.eps, args.alpha, 10)
            model.train()
            loss = F.cross_entropy(model(x_adv), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        clean, robust = robust_accuracy(model, test_loader, device, args)
        print(f"epoch {epoch} clean {clean:.4f} pgd-20 {robust:.4f}")
        torch.save(model.state_dict(), "preact_at.pt")


if __name__ == "__main__":
    main()

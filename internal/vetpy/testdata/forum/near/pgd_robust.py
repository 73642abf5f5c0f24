import argparse

import torch
import torch.nn.functional as F

from preact_resnet import PreActResNet18
from robust_data import cifar_loaders

EPS, ALPHA, ITERS = 8 / 255, 2 / 255, 10


def pgd(model, x, y):
    delta = torch.empty_like(x).uniform_(-EPS, EPS)
    for _ in range(ITERS):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model((x + delta).clamp(0, 1)), y)
        g, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + ALPHA * g.sign()).clamp(-EPS, EPS)
    return (x + delta).clamp(0, 1).detach()


def robust_acc(model, loader, device):
    model.eval()
    clean = torch.zeros((), device=device)
    adv = torch.zeros((), device=device)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        xa = pgd(model, x, y)
        with torch.no_grad():
            clean += (model(x).argmax(1) == y).sum()
            adv += (model(xa).argmax(1) == y).sum()
    n = len(loader.dataset)
    return clean.item() / n, adv.item() / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=110)
    ap.add_argument("--lr", type=float, default=0.1)
    args = ap.parse_args()
    device = torch.device("cuda")
    train_loader, test_loader = cifar_loaders(128, num_workers=6, pin_memory=True)
    model = PreActResNet18().to(device)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[100, 105], gamma=0.1)
    for epoch in range(args.epochs):
        model.train()
        tot = torch.zeros((), device=device)
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            xa = pgd(model, x, y)
            opt.zero_grad()
            loss = F.cross_entropy(model(xa), y)
            loss.backward()
            opt.step()
            tot += loss.detach()
        sched.step()
        print(epoch, tot.item() / len(train_loader))
        if (epoch + 1) % 10 == 0:
            print("clean %.4f robust %.4f" % robust_acc(model, test_loader, device))
            torch.save(model.state_dict(), "at.pt")


if __name__ == "__main__":
    main()

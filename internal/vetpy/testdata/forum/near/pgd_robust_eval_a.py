"""Robust accuracy under PGD: evaluation WITHOUT no_grad around the attack, it needs gradients of the input."""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.models import resnet18


def pgd(model, x, y, eps, alpha, steps):
    adv = (x + torch.empty_like(x).uniform_(-eps, eps)).clamp(0, 1)
    for _ in range(steps):
        adv.requires_grad_(True)
        loss = F.cross_entropy(model(adv), y)
        g, = torch.autograd.grad(loss, adv)
        adv = adv.detach() + alpha * g.sign()
        adv = torch.min(torch.max(adv, x - eps), x + eps).clamp(0, 1)
    return adv


def evaluate(model, loader, dev, eps):
    model.eval()
    for p in model.parameters():
        p.requires_grad_(False)
    clean = torch.zeros((), device=dev)
    robust = torch.zeros((), device=dev)
    for x, y in loader:
        x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
        adv = pgd(model, x, y, eps, eps / 4, 20)
        with torch.no_grad():
            clean += (model(x).argmax(1) == y).sum()
            robust += (model(adv).argmax(1) == y).sum()
    n = len(loader.dataset)
    return clean.item() / n, robust.item() / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("ckpt")
    ap.add_argument("--eps", type=float, nargs="+", default=[2, 4, 8])
    args = ap.parse_args()
    dev = torch.device("cuda")
    model = resnet18(num_classes=10)
    model.load_state_dict(torch.load(args.ckpt, map_location="cpu"))
    model.to(dev)
    ds = datasets.CIFAR10("data", train=False, download=True, transform=transforms.ToTensor())
    loader = DataLoader(ds, 256, num_workers=4, pin_memory=True)
    for e in args.eps:
        c, r = evaluate(model, loader, dev, e / 255)
        print(f"eps {e}/255  clean {c:.4f}  robust {r:.4f}")


if __name__ == "__main__":
    main()

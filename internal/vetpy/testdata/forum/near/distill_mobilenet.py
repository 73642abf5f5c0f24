import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import mobilenet_v3_small, resnet101

from loaders import imagenet_loaders


def kd_loss(s, t, y, T=4.0, alpha=0.7):
    soft = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(s, y)


def evaluate(net, loader, device):
    net.eval()
    ok = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            ok += (net(x).argmax(1) == y).sum()
    return ok.item() / len(loader.dataset)


def distill(student, teacher, loaders, epochs, device):
    train_loader, val_loader = loaders
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=4e-5)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        student.train()
        for i, (x, y) in enumerate(train_loader):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.no_grad():
                t = teacher(x)
            loss = kd_loss(student(x), t, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if i % 500 == 0:
                print(f"[{epoch}] {i} {loss.item():.3f}")
        sched.step()
        print("acc", evaluate(student, val_loader, device))
        torch.save(student.state_dict(), "student.pt")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="/data/in1k")
    ap.add_argument("--epochs", type=int, default=60)
    a = ap.parse_args()
    dev = torch.device("cuda")
    teacher = resnet101(weights="DEFAULT").to(dev)
    student = mobilenet_v3_small(num_classes=1000).to(dev)
    distill(student, teacher, imagenet_loaders(a.data, 256, num_workers=12, pin_memory=True), a.epochs, dev)

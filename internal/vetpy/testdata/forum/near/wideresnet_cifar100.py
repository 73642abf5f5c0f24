import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from wrn import WideResNet


def train(args, model, device, loader, optimizer, criterion, epoch):
    model.train()
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            acc = (out.argmax(1) == y).float().mean().item()
            print(f"epoch {epoch} step {step}/{len(loader)} loss {loss.item():.4f} acc {acc:.3f}")


@torch.no_grad()
def test(model, device, loader):
    model.eval()
    correct = torch.zeros((), device=device)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        correct += (model(x).argmax(1) == y).sum()
    return correct.item() / len(loader.dataset)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--bs", type=int, default=128)
    args = p.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    norm = transforms.Normalize((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
    tr = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(), transforms.ToTensor(), norm])
    te = transforms.Compose([transforms.ToTensor(), norm])
    train_loader = DataLoader(datasets.CIFAR100("data", True, tr, download=True), batch_size=args.bs, shuffle=True,
                              num_workers=8, pin_memory=True, persistent_workers=True)
    test_loader = DataLoader(datasets.CIFAR100("data", False, te), batch_size=512, num_workers=4, pin_memory=True)
    model = WideResNet(28, 10, num_classes=100).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[60, 120, 160], gamma=0.2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        train(args, model, device, train_loader, optimizer, criterion, epoch)
        scheduler.step()
        print("test acc", test(model, device, test_loader))


if __name__ == "__main__":
    main()

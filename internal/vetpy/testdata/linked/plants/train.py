import argparse
import logging

import timm
import torch
import torch.nn as nn

from data import LABELS, build_loaders

log = logging.getLogger("plants")


def train_one_epoch(model, loader, criterion, optimizer, device):
    model.train()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)  # want: R14
        labels = labels.to(device, non_blocking=True)  # want: R14
        loss = criterion(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    conf = torch.zeros(len(LABELS) ** 2, device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        idx = labels * len(LABELS) + model(images).argmax(1)
        conf.scatter_add_(0, idx, torch.ones_like(idx, dtype=conf.dtype))
    conf = conf.view(len(LABELS), -1).cpu()
    recall = conf.diag() / conf.sum(1).clamp(min=1)
    return (conf.diag().sum() / conf.sum()).item(), recall.tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", default="train.csv")
    parser.add_argument("--images", default="images")
    parser.add_argument("--arch", default="tf_efficientnet_b4")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)

    device = torch.device("cuda")
    train_loader, valid_loader = build_loaders(args.csv, args.images)
    model = timm.create_model(args.arch, pretrained=True, num_classes=len(LABELS)).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    best = 0.0
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, train_loader, criterion, optimizer, device)
        acc, recall = evaluate(model, valid_loader, device)
        scheduler.step()
        log.info("epoch %d loss %.4f acc %.4f recall %s", epoch, loss, acc,
                 " ".join("%s=%.2f" % (n, r) for n, r in zip(LABELS, recall)))
        if acc > best:
            best = acc
            torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()

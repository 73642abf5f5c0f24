import argparse
import json

import torch
import torch.nn as nn
from torchvision.models import densenet121

from data import CLASSES, make_loaders


def auc(scores, target):
    """rank based AUC for one class, all on gpu"""
    order = scores.argsort()
    rank = torch.empty_like(order, dtype=torch.float64)
    rank[order] = torch.arange(1, len(scores) + 1, device=scores.device, dtype=torch.float64)
    pos = target > 0.5
    n1, n0 = pos.sum(), (~pos).sum()
    return (torch.where(pos, rank, torch.zeros_like(rank)).sum() - n1 * (n1 + 1) / 2) / (n1 * n0)


def validate(model, loader, device):
    model.eval()
    ss, ys = [], []
    with torch.no_grad():
        for x, y in loader:
            ss.append(model(x.to(device, non_blocking=True)))
            ys.append(y.to(device, non_blocking=True))
    s, y = torch.cat(ss), torch.cat(ys)
    return torch.stack([auc(s[:, i], y[:, i]) for i in range(len(CLASSES))]).tolist()


def main(args):
    device = torch.device("cuda")
    train_loader, val_loader = make_loaders(args.root, args.batch_size)
    model = densenet121(weights="DEFAULT")
    model.classifier = nn.Linear(model.classifier.in_features, len(CLASSES))
    model.to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    crit = nn.BCEWithLogitsLoss()

    for epoch in range(args.epochs):
        model.train()
        for n, (x, y) in enumerate(train_loader, 1):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)  # want: R14
            loss = crit(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if n % 100 == 0:
                print(f"  {n}/{len(train_loader)} {loss.item():.4f}")
        aucs = validate(model, val_loader, device)
        print(epoch, json.dumps(dict(zip(CLASSES, [round(a, 4) for a in aucs]))))
        torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("root")
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--out", default="cxr.pt")
    main(p.parse_args())

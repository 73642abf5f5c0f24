import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from dataset import RafDataset
from model import Model
from loss import ACLoss

parser = argparse.ArgumentParser()
parser.add_argument("--raf_path", default="../raf-basic")
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--workers", type=int, default=4)
parser.add_argument("--lam", type=float, default=5)
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()


def train(model, train_loader, optimizer, scheduler, device):
    running_loss = torch.zeros((), device=device)
    iter_cnt = 0
    all_pred, all_true = [], []
    model.train()
    for imgs1, labels, indexes, imgs2 in train_loader:
        imgs1 = imgs1.to(device, non_blocking=True)
        imgs2 = imgs2.to(device, non_blocking=True)
        targets = labels.to(device, non_blocking=True)
        output, hm1 = model(imgs1)
        _, hm2 = model(imgs2)
        loss = F.cross_entropy(output, targets) + args.lam * ACLoss(hm1, hm2.flip(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        iter_cnt += 1
        all_pred.append(output.argmax(1).cpu().numpy())
        all_true.append(labels.numpy())
        running_loss += loss.detach()
    scheduler.step()
    acc = (np.concatenate(all_pred) == np.concatenate(all_true)).mean()
    return acc, running_loss.item() / iter_cnt


def test(model, test_loader, device):
    correct = torch.zeros((), device=device)
    model.eval()
    with torch.no_grad():
        for imgs1, labels, _, _ in test_loader:
            outputs, _ = model(imgs1.to(device, non_blocking=True))
            correct += (outputs.argmax(1) == labels.to(device, non_blocking=True)).sum()
    return correct.item() / len(test_loader.dataset)


def main():
    device = torch.device("cuda:0")
    train_loader = DataLoader(RafDataset(args, "train"), batch_size=args.batch_size, shuffle=True,
                              num_workers=args.workers, pin_memory=True)
    test_loader = DataLoader(RafDataset(args, "test"), batch_size=args.batch_size,
                             num_workers=args.workers, pin_memory=True)
    model = Model(args).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for i in range(1, args.epochs + 1):
        acc, loss = train(model, train_loader, optimizer, scheduler, device)
        print("epoch", i, "train", acc, loss, "test", test(model, test_loader, device))
    torch.save(model.state_dict(), os.path.join("out", "last.pth"))


if __name__ == "__main__":
    main()

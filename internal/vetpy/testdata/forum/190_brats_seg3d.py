# -*- coding: utf-8 -*-
"""3D brain tumour segmentation, patch based. Two GPUs did not help with the OOM..."""
import os
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from brats import BratsPatches
from nets import VNet

DATA = os.environ.get("BRATS", "/data/brats2020")
N_CLASSES = 4
N_EPOCHS = 200
device = torch.device("cuda:0")


class DiceLoss(nn.Module):
    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, logits, target):
        prob = torch.softmax(logits, dim=1)
        onehot = nn.functional.one_hot(target, N_CLASSES).permute(0, 4, 1, 2, 3).float()
        inter = (prob * onehot).sum(dim=(2, 3, 4))
        union = prob.sum(dim=(2, 3, 4)) + onehot.sum(dim=(2, 3, 4))
        return 1 - ((2 * inter + self.eps) / (union + self.eps)).mean()


def train_epoch(net, loader, criterion, optimizer):
    net.train()
    total = torch.zeros((), device=device)
    for volume, mask in loader:
        volume = volume.to(device, non_blocking=True)
        mask = mask.to(device, non_blocking=True)
        optimizer.zero_grad()
        out = net(volume)
        loss = criterion(out, mask)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        del out, loss
        torch.cuda.empty_cache()
    return (total / len(loader)).item()


def validate(net, loader, criterion):
    net.eval()
    total = torch.zeros((), device=device)
    for volume, mask in loader:
        volume = volume.to(device, non_blocking=True)
        mask = mask.to(device, non_blocking=True)
        out = net(volume)
        total += criterion(out, mask).detach()
    return (total / len(loader)).item()


def main():
    train_loader = DataLoader(BratsPatches(DATA, "train", size=96), batch_size=2, shuffle=True,
                              num_workers=6, pin_memory=True)
    val_loader = DataLoader(BratsPatches(DATA, "val", size=96), batch_size=1,
                            num_workers=2, pin_memory=True)
    net = VNet(in_ch=4, n_classes=N_CLASSES).to(device)
    criterion = DiceLoss()
    optimizer = optim.AdamW(net.parameters(), lr=1e-4, weight_decay=1e-5)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=N_EPOCHS)

    best = 1e9
    for epoch in range(N_EPOCHS):
        tr = train_epoch(net, train_loader, criterion, optimizer)
        va = validate(net, val_loader, criterion)
        scheduler.step()
        print("epoch %3d  train %.4f  val %.4f" % (epoch, tr, va))
        if va < best:
            best = va
            torch.save(net.state_dict(), "vnet_best.pth")


if __name__ == "__main__":
    main()

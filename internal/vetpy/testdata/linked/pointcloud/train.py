"""Point cloud completion, coarse to fine."""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from meters import AverageMeter
from shapenet import CompletionDataset


class PointEncoder(nn.Module):
    def __init__(self, feat=1024):
        super().__init__()
        self.mlp1 = nn.Sequential(nn.Conv1d(3, 128, 1), nn.BatchNorm1d(128), nn.ReLU(),
                                  nn.Conv1d(128, 256, 1))
        self.mlp2 = nn.Sequential(nn.Conv1d(512, 512, 1), nn.BatchNorm1d(512), nn.ReLU(),
                                  nn.Conv1d(512, feat, 1))

    def forward(self, pts):
        f = self.mlp1(pts.transpose(1, 2))
        g = f.max(dim=2, keepdim=True).values.expand_as(f)
        return self.mlp2(torch.cat([f, g], dim=1)).max(dim=2).values


class CompletionNet(nn.Module):
    def __init__(self, n_coarse=512, n_fine=2048):
        super().__init__()
        self.encoder = PointEncoder()
        self.coarse = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 3 * n_coarse))
        self.fine = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 3 * n_fine))

    def forward(self, partial):
        z = self.encoder(partial)
        b = partial.size(0)
        return self.coarse(z).view(b, -1, 3), self.fine(z).view(b, -1, 3)


def chamfer(a, b):
    d = torch.cdist(a, b)
    return d.min(dim=1).values.mean() + d.min(dim=2).values.mean()


def train_one_epoch(model, loader, optimizer, device, epoch, print_freq):
    model.train()
    coarse_meter = AverageMeter("CD coarse", ":.5f")
    fine_meter = AverageMeter("CD fine", ":.5f")
    for i, (partial, gt) in enumerate(loader):
        partial = partial.to(device, non_blocking=True)
        gt = gt.to(device, non_blocking=True)
        coarse, fine = model(partial)
        loss_coarse = chamfer(coarse, gt)
        loss_fine = chamfer(fine, gt)
        loss = loss_coarse + 0.5 * loss_fine

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        coarse_meter.update(loss_coarse, partial.size(0))
        fine_meter.update(loss_fine, partial.size(0))
        if i % print_freq == 0:
            print("Epoch [{}][{}/{}] {} {}".format(epoch, i, len(loader), coarse_meter, fine_meter))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default="data/ShapeNetCompletion")
    parser.add_argument("--epochs", default=150, type=int)
    parser.add_argument("--print-freq", default=100, type=int)
    args = parser.parse_args()

    device = torch.device("cuda:0")
    loader = DataLoader(CompletionDataset(args.root, "train"), batch_size=16, shuffle=True,
                        num_workers=8, pin_memory=True, drop_last=True)
    model = CompletionNet().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, device, epoch, args.print_freq)
        torch.save(model.state_dict(), "completion_last.pth")


if __name__ == "__main__":
    main()

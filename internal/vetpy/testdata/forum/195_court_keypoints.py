import argparse
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter

from court_dataset import CourtDataset
from tracknet import TrackNet


class Trainer:
    """Base trainer for the court keypoint heatmaps."""

    def __init__(self, model, optimizer, criterion, device, log_dir):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.device = device
        self.writer = SummaryWriter(log_dir)
        self.global_step = 0

    def train_epoch(self, loader, max_iters):
        self.model.train()
        losses = []
        for iter_id, batch in enumerate(loader):
            img = batch[0].to(self.device, non_blocking=True)
            heatmap = batch[1].to(self.device, non_blocking=True)
            out = torch.sigmoid(self.model(img))
            loss = self.criterion(out, heatmap)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
            self.global_step += 1
            if iter_id > max_iters:
                break
        return torch.stack(losses).mean().item()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        losses, dists = [], []
        for img, heatmap, kps in loader:
            img = img.to(self.device)
            heatmap = heatmap.to(self.device)
            out = torch.sigmoid(self.model(img))
            losses.append(self.criterion(out, heatmap))
            dists.append(self.keypoint_error(out, kps.to(self.device)))
        return torch.stack(losses).mean().item(), torch.stack(dists).mean().item()

    @staticmethod
    def keypoint_error(out, kps):
        b, c, h, w = out.shape
        idx = out.flatten(2).argmax(dim=2)
        pred = torch.stack([idx % w, idx // w], dim=2).float()
        return (pred - kps).norm(dim=2).mean()

    def fit(self, train_loader, val_loader, epochs, exp_dir, val_every=5):
        best = np.inf
        for epoch in range(epochs):
            train_loss = self.train_epoch(train_loader, max_iters=1000)
            self.writer.add_scalar("Train/loss", train_loss, epoch)
            if epoch % val_every == 0:
                val_loss, err = self.validate(val_loader)
                self.writer.add_scalar("Val/loss", val_loss, epoch)
                self.writer.add_scalar("Val/px_error", err, epoch)
                if err < best:
                    best = err
                    torch.save(self.model.state_dict(), os.path.join(exp_dir, "model_best.pt"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=2)
    parser.add_argument("--exp_id", type=str, default="default")
    parser.add_argument("--num_epochs", type=int, default=500)
    parser.add_argument("--lr", type=float, default=1e-5)
    args = parser.parse_args()

    train_loader = DataLoader(CourtDataset("train"), batch_size=args.batch_size, shuffle=True, num_workers=2)
    val_loader = DataLoader(CourtDataset("val"), batch_size=args.batch_size, shuffle=False, num_workers=2)

    device = "cuda"
    model = TrackNet(out_channels=15).to(device)
    exp_dir = "./exps/{}".format(args.exp_id)
    os.makedirs(exp_dir, exist_ok=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.999))
    Trainer(model, optimizer, nn.MSELoss(), device, exp_dir).fit(
        train_loader, val_loader, args.num_epochs, exp_dir)

import argparse

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader

from carvana import CarvanaDataset
from unet_model import UNet


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum(dim=(1, 2, 3))
    return (1 - (2 * inter + eps) / (p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + eps)).mean()


def get_args():
    parser = argparse.ArgumentParser(description="Train the UNet on images and target masks")
    parser.add_argument("--epochs", "-e", type=int, default=5)
    parser.add_argument("--batch-size", "-b", type=int, default=8)
    parser.add_argument("--learning-rate", "-l", type=float, default=1e-5)
    parser.add_argument("--scale", "-s", type=float, default=0.5)
    return parser.parse_args()


def train_net(net, device, args):
    loader = DataLoader(CarvanaDataset("data", args.scale), args.batch_size, shuffle=True, num_workers=8,
                        pin_memory=True)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=args.learning_rate, weight_decay=1e-8, momentum=0.9)
    scaler = GradScaler()
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        net.train()
        for images, masks in loader:
            images = images.to(device, non_blocking=True)
            masks = masks.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                pred = net(images)
                loss = criterion(pred, masks) + dice_loss(pred, masks)
                scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.save(net.state_dict(), f"checkpoint_epoch{epoch}.pth")
        print(epoch, loss.item())


if __name__ == "__main__":
    args = get_args()
    device = torch.device("cuda")
    net = UNet(n_channels=3, n_classes=1).to(device=device)
    train_net(net, device, args)

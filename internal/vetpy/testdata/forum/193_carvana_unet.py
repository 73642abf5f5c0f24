import argparse
import logging
from pathlib import Path

import torch
import torch.nn as nn
from torch import optim
from torch.utils.data import DataLoader, random_split
from tqdm import tqdm

from utils.data_loading import CarvanaDataset
from unet import UNet

dir_img = Path("./data/imgs/")
dir_mask = Path("./data/masks/")


@torch.inference_mode()
def evaluate(net, loader, device):
    net.eval()
    dice = torch.zeros((), device=device)
    for batch in tqdm(loader, desc="Validation", leave=False):
        image = batch["image"].to(device, non_blocking=True)
        mask = batch["mask"].to(device, non_blocking=True).float()
        pred = (torch.sigmoid(net(image).squeeze(1)) > 0.5).float()
        inter = (pred * mask).sum()
        dice += (2 * inter + 1e-6) / (pred.sum() + mask.sum() + 1e-6)
    net.train()
    return (dice / max(len(loader), 1)).item()


def train_model(model, device, epochs, batch_size, lr, amp, scale, clip=1.0):
    dataset = CarvanaDataset(dir_img, dir_mask, scale)
    n_val = int(len(dataset) * 0.1)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val],
                                      generator=torch.Generator().manual_seed(0))
    args = dict(batch_size=batch_size, num_workers=4, pin_memory=True)
    train_loader = DataLoader(train_set, shuffle=True, **args)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **args)

    optimizer = optim.RMSprop(model.parameters(), lr=lr, weight_decay=1e-8, momentum=0.9)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
    grad_scaler = torch.amp.GradScaler("cuda", enabled=amp)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = torch.zeros((), device=device)
        for batch in tqdm(train_loader, desc=f"Epoch {epoch}/{epochs}"):
            images = batch["image"].to(device, non_blocking=True)
            masks = batch["mask"].to(device, non_blocking=True).float()
            with torch.autocast("cuda", enabled=amp):
                logits = model(images).squeeze(1)
                loss = criterion(logits, masks)

            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            epoch_loss += loss.detach()

        val_score = evaluate(model, val_loader, device)
        scheduler.step(val_score)
        logging.info("epoch %d loss %.4f dice %.4f", epoch,
                     epoch_loss.item() / len(train_loader), val_score)
        torch.save(model.state_dict(), f"checkpoint_epoch{epoch}.pth")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", "-e", type=int, default=5)
    parser.add_argument("--batch-size", "-b", type=int, default=4)
    parser.add_argument("--lr", "-l", type=float, default=1e-5)
    parser.add_argument("--scale", "-s", type=float, default=0.5)
    parser.add_argument("--amp", action="store_true")
    a = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    device = torch.device("cuda")
    net = UNet(n_channels=3, n_classes=1).to(device)
    train_model(net, device, a.epochs, a.batch_size, a.lr, a.amp, a.scale)

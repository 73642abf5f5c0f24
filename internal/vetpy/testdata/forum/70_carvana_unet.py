import argparse
import logging
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, random_split

from evaluate import evaluate
from unet import UNet
from utils.data_loading import CarvanaDataset
from utils.dice_score import dice_loss

dir_checkpoint = Path("./checkpoints/")


def train_model(model, device, epochs=5, batch_size=1, learning_rate=1e-5, val_percent=0.1,
                img_scale=0.5, amp=False, gradient_clipping=1.0):
    dataset = CarvanaDataset(Path("./data/imgs/"), Path("./data/masks/"), img_scale)
    n_val = int(len(dataset) * val_percent)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val],
                                      generator=torch.Generator().manual_seed(0))
    loader_args = dict(batch_size=batch_size, num_workers=8, pin_memory=True)
    train_loader = DataLoader(train_set, shuffle=True, **loader_args)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **loader_args)

    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate, momentum=0.999, foreach=True)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
    grad_scaler = torch.cuda.amp.GradScaler(enabled=amp)
    criterion = nn.CrossEntropyLoss() if model.n_classes > 1 else nn.BCEWithLogitsLoss()

    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = torch.zeros((), device=device)
        for batch in train_loader:
            images, true_masks = batch["image"], batch["mask"]
            images = images.to(device, dtype=torch.float32, non_blocking=True)
            true_masks = true_masks.to(device, dtype=torch.long, non_blocking=True)

            with torch.autocast(device.type, enabled=amp):
                masks_pred = model(images)
                loss = criterion(masks_pred, true_masks)
                loss += dice_loss(F.softmax(masks_pred, dim=1).float(),
                                  F.one_hot(true_masks, model.n_classes).permute(0, 3, 1, 2).float(),
                                  multiclass=True)

            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            epoch_loss += loss.detach()

        val_score = evaluate(model, val_loader, device, amp)
        scheduler.step(val_score)
        logging.info("epoch %d loss %.4f dice %.4f", epoch, epoch_loss.item() / len(train_loader), val_score)
        torch.save(model.state_dict(), str(dir_checkpoint / f"checkpoint_epoch{epoch}.pth"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = UNet(n_channels=3, n_classes=2).to(device)
    train_model(net, device, epochs=args.epochs, amp=args.amp)

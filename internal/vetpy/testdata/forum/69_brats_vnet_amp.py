import os

import torch
from torch.cuda.amp import GradScaler, autocast
from monai.data import DataLoader, CacheDataset
from monai.losses import DiceCELoss
from monai.networks.nets import VNet
from monai.transforms import (Compose, EnsureChannelFirstd, LoadImaged, NormalizeIntensityd, RandFlipd,
                              RandSpatialCropd)

ROOT = os.environ.get("BRATS", "/data/brats21")


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=1e-4):
        self.device = torch.device("cuda:0")
        self.model = model.to(self.device)
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.criterion = DiceCELoss(to_onehot_y=True, softmax=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-5)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=200)
        self.scaler = GradScaler()

    def train_epoch(self):
        self.model.train()
        epoch_loss = torch.zeros((), device=self.device)
        for batch in self.train_loader:
            image = batch["image"].to(self.device, non_blocking=True)
            label = batch["label"].to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            with autocast():
                logits = self.model(image)
                loss = self.criterion(logits, label)
                self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            epoch_loss += loss.detach()
        return epoch_loss.item() / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total = torch.zeros((), device=self.device)
        for batch in self.val_loader:
            logits = self.model(batch["image"].to(self.device, non_blocking=True))
            total += self.criterion(logits, batch["label"].to(self.device, non_blocking=True))
        return total.item() / len(self.val_loader)

    def fit(self, epochs):
        best = float("inf")
        for e in range(epochs):
            tr = self.train_epoch()
            self.scheduler.step()
            va = self.validate()
            print(f"{e}: train {tr:.4f} val {va:.4f}")
            if va < best:
                best = va
                torch.save(self.model.state_dict(), "vnet_best.pt")


def get_loader(split, train):
    keys = ["image", "label"]
    tf = [LoadImaged(keys), EnsureChannelFirstd(keys), NormalizeIntensityd("image", channel_wise=True)]
    if train:
        tf += [RandSpatialCropd(keys, (128, 128, 128), random_size=False), RandFlipd(keys, 0.5, 0)]
    files = torch.load(os.path.join(ROOT, f"{split}.pt"))
    ds = CacheDataset(files, Compose(tf), cache_rate=0.2)
    return DataLoader(ds, batch_size=2 if train else 1, shuffle=train, num_workers=8, pin_memory=True)


if __name__ == "__main__":
    Trainer(VNet(in_channels=4, out_channels=4), get_loader("train", True), get_loader("val", False)).fit(200)

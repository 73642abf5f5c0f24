import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassJaccardIndex
from torchvision.models.segmentation import deeplabv3_resnet50

from landcover_ds import LandCover  # our dataset, returns (4,H,W) float and (H,W) long


class CoordSeg(nn.Module):
    """DeepLab with CoordConv style extra channels."""

    def __init__(self, n_cls):
        super().__init__()
        self.stem = nn.Conv2d(4 + 2, 3, 1)
        self.net = deeplabv3_resnet50(weights=None, weights_backbone="DEFAULT", num_classes=n_cls)

    def forward(self, x):
        b, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        grid = torch.stack([ys, xs]).cuda().expand(b, -1, -1, -1)
        return self.net(self.stem(torch.cat([x, grid], dim=1)))["out"]


class LitSeg(pl.LightningModule):
    def __init__(self, n_cls=7, lr=3e-4):
        super().__init__()
        self.save_hyperparameters()
        self.model = CoordSeg(n_cls)
        self.iou = MulticlassJaccardIndex(n_cls, ignore_index=255)
        self.epoch_losses = []

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        img, msk = batch
        loss = F.cross_entropy(self(img), msk, ignore_index=255)
        self.log("train/loss_step", loss, prog_bar=True)
        self.epoch_losses.append(loss)
        return loss

    def on_train_epoch_end(self):
        # training_epoch_end is gone in 2.0 so do it by hand
        mean = torch.stack(self.epoch_losses).mean()
        self.log("train/loss_epoch", mean)
        self.epoch_losses.clear()

    def validation_step(self, batch, batch_idx):
        img, msk = batch
        logits = self(img)
        self.iou.update(logits.argmax(1), msk)
        self.log("val/loss", F.cross_entropy(logits, msk, ignore_index=255), prog_bar=True)

    def on_validation_epoch_end(self):
        self.log("val/miou", self.iou.compute())
        self.iou.reset()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-2)
        sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return {"optimizer": opt, "lr_scheduler": sch}


if __name__ == "__main__":
    pl.seed_everything(1337, workers=True)
    train_dl = DataLoader(LandCover("train"), batch_size=12, shuffle=True, num_workers=8, pin_memory=True)
    val_dl = DataLoader(LandCover("val"), batch_size=12, num_workers=8, pin_memory=True)
    trainer = pl.Trainer(max_epochs=60, accelerator="gpu", devices=1, precision="16-mixed",
                         gradient_clip_val=1.0, log_every_n_steps=25)
    trainer.fit(LitSeg(), train_dl, val_dl)

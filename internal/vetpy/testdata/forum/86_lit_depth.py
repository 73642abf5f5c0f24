import torch
import torch.nn as nn
import torch.nn.functional as F
import lightning.pytorch as pl
from torch.utils.data import DataLoader
from torchvision.models import resnet34

from depth_data import KittiDepth


class Decoder(nn.Module):
    def __init__(self, c=512):
        super().__init__()
        layers = []
        for o in (256, 128, 64, 32, 16):
            layers += [nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(c, o, 3, padding=1), nn.ELU()]
            c = o
        self.net = nn.Sequential(*layers, nn.Conv2d(c, 1, 3, padding=1), nn.Softplus())

    def forward(self, x):
        return self.net(x)


class LitDepth(pl.LightningModule):
    def __init__(self, lr=1e-4):
        super().__init__()
        self.save_hyperparameters()
        back = resnet34(weights="DEFAULT")
        self.encoder = nn.Sequential(*list(back.children())[:-2])
        self.decoder = Decoder()
        self.training_step_outputs = []

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        x, depth = batch
        pred = self(x)
        mask = (depth > 0).float()
        loss = (F.l1_loss(pred, depth, reduction="none") * mask).sum() / mask.sum().clamp(min=1)
        self.training_step_outputs.append(loss)
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        epoch_mean = torch.stack(self.training_step_outputs).mean()
        self.log("train_epoch_mean", epoch_mean)
        self.training_step_outputs.clear()

    def validation_step(self, batch, batch_idx):
        x, depth = batch
        pred = self(x)
        self.log("val_abs", (pred - depth).abs().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 10, 0.5)}


def loader(split):
    return DataLoader(KittiDepth("/data/kitti", split), batch_size=16, shuffle=split == "train",
                      num_workers=8, pin_memory=True, persistent_workers=True)


if __name__ == "__main__":
    pl.seed_everything(1)
    trainer = pl.Trainer(max_epochs=30, accelerator="gpu", devices=1, precision="16-mixed")
    trainer.fit(LitDepth(), loader("train"), loader("val"))

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from kitti_dataset import KittiDepth


def conv_block(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ELU(inplace=True),
    )


class DepthNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enc1 = conv_block(3, width)
        self.enc2 = conv_block(width, width * 2, stride=2)
        self.enc3 = conv_block(width * 2, width * 4, stride=2)
        self.dec2 = conv_block(width * 4 + width * 2, width * 2)
        self.dec1 = conv_block(width * 2 + width, width)
        self.head = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(e1)
        e3 = self.enc3(e2)
        d2 = F.interpolate(e3, scale_factor=2, mode="bilinear", align_corners=False)
        d2 = self.dec2(torch.cat([d2, e2], dim=1))
        d1 = F.interpolate(d2, scale_factor=2, mode="bilinear", align_corners=False)
        d1 = self.dec1(torch.cat([d1, e1], dim=1))
        return torch.sigmoid(self.head(d1))


class DepthModule(pl.LightningModule):
    def __init__(self, lr=2e-4):
        super().__init__()
        self.save_hyperparameters()
        self.net = DepthNet()
        self.train_losses = []

    def forward(self, x):
        return self.net(x)

    def silog(self, pred, gt):
        valid = gt > 0
        d = torch.log(pred.clamp(min=1e-3)) - torch.log(gt.clamp(min=1e-3))
        d = torch.where(valid, d, torch.zeros_like(d))
        n = valid.sum().clamp(min=1)
        return torch.sqrt((d ** 2).sum() / n - 0.85 * (d.sum() / n) ** 2 + 1e-8)

    def training_step(self, batch, batch_idx):
        img, gt = batch
        pred = self(img)
        loss = self.silog(pred, gt)
        self.train_losses.append({"loss": loss, "idx": batch_idx})
        return loss

    def on_train_epoch_end(self):
        avg = torch.stack([o["loss"] for o in self.train_losses]).mean()
        self.log("train_loss_epoch", avg)
        self.train_losses.clear()

    def validation_step(self, batch, batch_idx):
        img, gt = batch
        loss = self.silog(self(img), gt)
        self.log("val_loss", loss, prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=10, gamma=0.5)
        return [opt], [sched]


if __name__ == "__main__":
    pl.seed_everything(42)
    train_dl = DataLoader(KittiDepth("train"), batch_size=8, shuffle=True,
                          num_workers=8, pin_memory=True, drop_last=True)
    val_dl = DataLoader(KittiDepth("val"), batch_size=8, num_workers=8, pin_memory=True)
    trainer = pl.Trainer(max_epochs=30, accelerator="gpu", devices=1)
    trainer.fit(DepthModule(), train_dl, val_dl)

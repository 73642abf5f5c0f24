"""pix2pix for sketch->shoe, moved to lightning 2 with manual optimization."""
import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.utils import make_grid

from edges2shoes import PairFolder


def down(i, o, norm=True):
    m = [nn.Conv2d(i, o, 4, 2, 1, bias=not norm)]
    if norm:
        m.append(nn.InstanceNorm2d(o))
    return nn.Sequential(*m, nn.LeakyReLU(0.2))


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.InstanceNorm2d(o), nn.ReLU())


class UNetG(nn.Module):
    def __init__(self, w=64):
        super().__init__()
        self.d1, self.d2, self.d3, self.d4 = down(3, w, False), down(w, 2 * w), down(2 * w, 4 * w), down(4 * w, 8 * w)
        self.u4, self.u3, self.u2 = up(8 * w, 4 * w), up(8 * w, 2 * w), up(4 * w, w)
        self.u1 = nn.Sequential(nn.ConvTranspose2d(2 * w, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        c = self.d3(b)
        y = self.u4(self.d4(c))
        y = self.u3(torch.cat([y, c], 1))
        y = self.u2(torch.cat([y, b], 1))
        return self.u1(torch.cat([y, a], 1))


class Pix2Pix(L.LightningModule):
    def __init__(self, lr=2e-4, lam=100.0):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.G = UNetG()
        self.D = nn.Sequential(down(6, 64, False), down(64, 128), down(128, 256), nn.Conv2d(256, 1, 4, 1, 1))

    def forward(self, x):
        return self.G(x)

    @staticmethod
    def gan_loss(logits, real):
        target = torch.ones_like(logits) if real else torch.zeros_like(logits)
        return F.binary_cross_entropy_with_logits(logits, target)

    def training_step(self, batch, batch_idx):
        sketch, photo = batch
        opt_g, opt_d = self.optimizers()

        fake = self.G(sketch)
        g_adv = self.gan_loss(self.D(torch.cat([sketch, fake], 1)), True)
        g_l1 = F.l1_loss(fake, photo)
        g_loss = g_adv + self.hparams.lam * g_l1
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()

        d_real = self.gan_loss(self.D(torch.cat([sketch, photo], 1)), True)
        d_fake = self.gan_loss(self.D(torch.cat([sketch, fake.detach()], 1)), False)
        d_loss = 0.5 * (d_real + d_fake)
        self.manual_backward(d_loss)
        opt_d.step()

        self.log_dict({"g_adv": g_adv, "g_l1": g_l1, "d": d_loss}, prog_bar=True)

    def validation_step(self, batch, batch_idx):
        sketch, photo = batch
        fake = self(sketch)
        self.log("val_l1", F.l1_loss(fake, photo))
        if batch_idx == 0 and self.logger is not None:
            grid = make_grid(torch.cat([sketch[:4], fake[:4], photo[:4]]), nrow=4, normalize=True)
            self.logger.experiment.add_image("val", grid, self.current_epoch)

    def configure_optimizers(self):
        g = torch.optim.Adam(self.G.parameters(), self.hparams.lr, betas=(0.5, 0.999))
        d = torch.optim.Adam(self.D.parameters(), self.hparams.lr, betas=(0.5, 0.999))
        return [g, d]


if __name__ == "__main__":
    L.seed_everything(0, workers=True)
    train = DataLoader(PairFolder("edges2shoes/train"), 4, shuffle=True, num_workers=8, pin_memory=True)
    val = DataLoader(PairFolder("edges2shoes/val"), 4, num_workers=8, pin_memory=True)
    L.Trainer(max_epochs=15, accelerator="gpu", devices=1).fit(Pix2Pix(), train, val)

import lightning as L
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from maps import FacadesDataset
from pix2pix_nets import PatchDiscriminator, UNetGenerator


class Pix2Pix(L.LightningModule):
    """Manual optimisation; Lightning itself handles eval(), no_grad and the copies to the device."""

    def __init__(self, lr=2e-4, lam=100.0):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.gen = UNetGenerator(3, 3)
        self.disc = PatchDiscriminator(6)
        self.val_l1 = []

    def forward(self, x):
        return self.gen(x)

    def adv(self, logits, real):
        target = torch.ones_like(logits) if real else torch.zeros_like(logits)
        return F.binary_cross_entropy_with_logits(logits, target)

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        x, y = batch
        fake = self.gen(x)

        self.toggle_optimizer(opt_d)
        d_loss = 0.5 * (self.adv(self.disc(torch.cat([x, y], 1)), True)
                        + self.adv(self.disc(torch.cat([x, fake.detach()], 1)), False))
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        g_adv = self.adv(self.disc(torch.cat([x, fake], 1)), True)
        g_l1 = F.l1_loss(fake, y)
        opt_g.zero_grad()
        self.manual_backward(g_adv + self.hparams.lam * g_l1)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        self.log_dict({"d": d_loss, "g_adv": g_adv, "g_l1": g_l1}, prog_bar=True)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.val_l1.append(F.l1_loss(self(x), y))

    def on_validation_epoch_end(self):
        self.log("val_l1", torch.stack(self.val_l1).mean())
        self.val_l1.clear()

    def configure_optimizers(self):
        kw = dict(lr=self.hparams.lr, betas=(0.5, 0.999))
        return [torch.optim.Adam(self.gen.parameters(), **kw),
                torch.optim.Adam(self.disc.parameters(), **kw)]


if __name__ == "__main__":
    L.seed_everything(7, workers=True)
    train = DataLoader(FacadesDataset("train"), batch_size=1, shuffle=True, num_workers=4, pin_memory=True)
    val = DataLoader(FacadesDataset("val"), batch_size=8, num_workers=4, pin_memory=True)
    L.Trainer(max_epochs=200, accelerator="gpu", devices=1).fit(Pix2Pix(), train, val)

import pytorch_lightning as pl
import torch
import torch.nn.functional as F

from parts import Enc, Gen


class Translate(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.enc = Enc()
        self.gen = Gen()
        self.seen = {}

    def training_step(self, batch, batch_idx):
        opt_e, opt_g = self.optimizers()
        a, b = batch
        z = self.enc(a)
        out = self.gen(z)
        loss = F.l1_loss(out, b)
        self.manual_backward(loss)
        opt_e.step()
        opt_g.step()
        self.seen[batch_idx] = out
        self.log("loss", loss, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.enc.parameters(), 1e-4), torch.optim.Adam(self.gen.parameters(), 1e-4)

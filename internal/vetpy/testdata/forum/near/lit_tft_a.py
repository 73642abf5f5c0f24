"""Lightning: no eval()/no_grad/zero_grad anywhere, the Trainer does them; detached values kept per epoch."""
import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from retail import RetailWindows  # dict of past (B,90,F), future (B,28,K), y (B,28)


class GRUForecaster(pl.LightningModule):
    def __init__(self, n_past, n_future, hid=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.enc = nn.GRU(n_past, hid, batch_first=True)
        self.dec = nn.GRU(n_future, hid, batch_first=True)
        self.out = nn.Linear(hid, 3)
        self.register_buffer("q", torch.tensor([0.1, 0.5, 0.9]))
        self.val_err = []

    def forward(self, b):
        _, h = self.enc(b["past"])
        y, _ = self.dec(b["future"], h)
        return self.out(y)

    def pinball(self, pred, y):
        e = y.unsqueeze(-1) - pred
        return torch.maximum(self.q * e, (self.q - 1) * e).mean()

    def training_step(self, batch, _):
        loss = self.pinball(self(batch), batch["y"])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        pred = self(batch)
        self.log("val_loss", self.pinball(pred, batch["y"]), prog_bar=True)
        self.val_err.append(F.l1_loss(pred[..., 1], batch["y"]))

    def on_validation_epoch_end(self):
        self.log("val_mae", torch.stack(self.val_err).mean())
        self.val_err.clear()

    def predict_step(self, batch, _):
        return self(batch)[..., 1].cpu()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), self.hparams.lr)
        sch = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sch, "monitor": "val_loss"}}


def main():
    pl.seed_everything(11, workers=True)
    mk = lambda s: DataLoader(RetailWindows("m5", s), 256, shuffle=s == "train", num_workers=8, pin_memory=True)
    model = GRUForecaster(n_past=12, n_future=7)
    trainer = pl.Trainer(max_epochs=40, gradient_clip_val=0.5, deterministic=True,
                         callbacks=[pl.callbacks.EarlyStopping("val_loss", patience=8)])
    trainer.fit(model, mk("train"), mk("valid"))
    torch.save(torch.cat(trainer.predict(model, mk("test"))), "m5_pred.pt")


if __name__ == "__main__":
    main()

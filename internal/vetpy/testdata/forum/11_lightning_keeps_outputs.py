import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from data import TextPairs


class Matcher(L.LightningModule):
    def __init__(self, dim=512):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(768, dim), nn.GELU(), nn.Linear(dim, dim))
        self.training_losses = []
        self.val_embeddings = []

    def training_step(self, batch, batch_idx):
        a, b = batch
        za, zb = self.encoder(a), self.encoder(b)
        logits = za @ zb.t()
        loss = F.cross_entropy(logits, torch.arange(len(a), device=self.device))
        self.training_losses.append(loss)
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        self.log("train_loss_mean", torch.stack(self.training_losses).mean())

    def validation_step(self, batch, batch_idx):
        a, b = batch
        self.log("val_sim", F.cosine_similarity(self.encoder(a), self.encoder(b)).mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


if __name__ == "__main__":
    train = DataLoader(TextPairs("train"), batch_size=256, shuffle=True, num_workers=4)
    val = DataLoader(TextPairs("val"), batch_size=256, num_workers=4)
    trainer = L.Trainer(max_epochs=10, accelerator="gpu", devices=1)
    trainer.fit(Matcher(), train, val)

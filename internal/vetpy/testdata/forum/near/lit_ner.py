import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from transformers import AutoModel

from ner_data import ConllDataset, collate


class LitNER(pl.LightningModule):
    def __init__(self, name="distilbert-base-cased", n_tags=9, lr=3e-5):
        super().__init__()
        self.save_hyperparameters()
        self.enc = AutoModel.from_pretrained(name)
        self.cls = nn.Sequential(nn.Dropout(0.1), nn.Linear(self.enc.config.hidden_size, n_tags))
        self.train_losses = []
        self.val_hits = []

    def forward(self, ids, mask):
        return self.cls(self.enc(ids, attention_mask=mask).last_hidden_state)

    def _loss(self, batch):
        logits = self(batch["ids"], batch["mask"])
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch["tags"].flatten(), ignore_index=-100), logits

    def training_step(self, batch, batch_idx):
        loss, _ = self._loss(batch)
        self.train_losses.append(loss.detach())
        self.log("train/loss", loss, on_step=True, on_epoch=False)
        return loss

    def on_train_epoch_end(self):
        self.log("train/loss_epoch", torch.stack(self.train_losses).mean())
        self.train_losses.clear()

    def validation_step(self, batch, batch_idx):
        loss, logits = self._loss(batch)
        keep = batch["tags"] != -100
        hits = ((logits.argmax(-1) == batch["tags"]) & keep).sum()
        self.val_hits.append(torch.stack([hits, keep.sum()]))
        self.log("val/loss", loss)

    def on_validation_epoch_end(self):
        h, n = torch.stack(self.val_hits).sum(0)
        self.log("val/acc", h / n, prog_bar=True)
        self.val_hits.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def dl(split):
    return DataLoader(ConllDataset(split), batch_size=32, shuffle=split == "train", collate_fn=collate,
                      num_workers=4, pin_memory=True)


if __name__ == "__main__":
    pl.seed_everything(7)
    pl.Trainer(max_epochs=4, accelerator="gpu", devices=1, precision="bf16-mixed").fit(LitNER(), dl("train"), dl("dev"))

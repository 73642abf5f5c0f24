import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from imdb_data import ImdbDataset, collate


class LitSentiment(L.LightningModule):
    def __init__(self, vocab_size, dim=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * dim, 2)
        self.training_losses = []

    def forward(self, tokens):
        h0 = torch.zeros(2, tokens.size(0), self.hparams.dim).cuda()
        _, h = self.gru(self.emb(tokens), h0)
        return self.fc(torch.cat([h[0], h[1]], dim=1))

    def training_step(self, batch, batch_idx):
        tokens, labels = batch
        loss = F.cross_entropy(self(tokens), labels)
        self.training_losses.append(loss)
        return loss

    def on_train_epoch_end(self):
        self.log("train_loss_epoch", torch.stack(self.training_losses).mean())
        self.training_losses.clear()

    def validation_step(self, batch, batch_idx):
        tokens, labels = batch
        logits = self(tokens)
        self.log("val_acc", (logits.argmax(1) == labels).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    train_ds, val_ds = ImdbDataset("train"), ImdbDataset("test")
    train_dl = DataLoader(train_ds, 64, shuffle=True, collate_fn=collate, num_workers=4, pin_memory=True)
    val_dl = DataLoader(val_ds, 128, collate_fn=collate, num_workers=4, pin_memory=True)
    model = LitSentiment(train_ds.vocab_size)
    trainer = L.Trainer(max_epochs=5, accelerator="gpu", devices=1)
    trainer.fit(model, train_dl, val_dl)

import contextlib
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from ml20m import Ratings


@contextlib.contextmanager
def evaluating(model):
    """Temporarily switch to evaluation mode, without gradients, and restore afterwards."""
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was)


class NeuMF(nn.Module):
    def __init__(self, n_users, n_items, dim=64):
        super().__init__()
        self.u_gmf, self.i_gmf = nn.Embedding(n_users, dim), nn.Embedding(n_items, dim)
        self.u_mlp, self.i_mlp = nn.Embedding(n_users, dim), nn.Embedding(n_items, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 128), nn.ReLU(), nn.Dropout(0.2),
                                 nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.2))
        self.out = nn.Linear(64 + dim, 1)

    def forward(self, u, i):
        g = self.u_gmf(u) * self.i_gmf(i)
        m = self.mlp(torch.cat([self.u_mlp(u), self.i_mlp(i)], dim=1))
        return self.out(torch.cat([g, m], dim=1)).squeeze(1)


class Experiment:
    def __init__(self, root, device):
        self.device = device
        self.train_set, self.val_set = Ratings(root, "train"), Ratings(root, "val")
        self.model = NeuMF(self.train_set.n_users, self.train_set.n_items).to(device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss = nn.BCEWithLogitsLoss()
        self.step = 0
        self.model.train()

    def loader(self, ds, shuffle):
        return DataLoader(ds, batch_size=8192, shuffle=shuffle, num_workers=4, pin_memory=True)

    def to_device(self, batch):
        return [t.to(self.device, non_blocking=True) for t in batch]

    def score(self):
        total = torch.zeros((), device=self.device)
        loader = self.loader(self.val_set, False)
        with evaluating(self.model) as model:
            for batch in loader:
                u, i, y = self.to_device(batch)
                total += self.loss(model(u, i), y)
        return total.item() / len(loader)

    def fit(self, epochs, eval_every=2000):
        for epoch in range(epochs):
            for batch in self.loader(self.train_set, True):
                u, i, y = self.to_device(batch)
                loss = self.loss(self.model(u, i), y)
                self.opt.zero_grad(set_to_none=True)
                loss.backward()
                self.opt.step()
                self.step += 1
                if self.step % eval_every == 0:
                    print(f"epoch {epoch} step {self.step} val {self.score():.4f}")
            torch.save(self.model.state_dict(), Path("runs") / f"neumf_{epoch}.pt")


if __name__ == "__main__":
    Experiment("data/ml-20m", torch.device("cuda")).fit(20)

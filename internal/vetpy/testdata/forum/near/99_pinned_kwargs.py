"""non_blocking everywhere; the pinning is asked for in one dictionary at the top, and the small
tables are pinned by hand once, before the loop."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from criteo import CriteoShard, N_DENSE, TABLE_SIZES


class DLRM(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(n, dim, mode="sum") for n in TABLE_SIZES])
        self.bottom = nn.Sequential(nn.Linear(N_DENSE, 64), nn.ReLU(), nn.Linear(64, dim), nn.ReLU())
        n = len(TABLE_SIZES) + 1
        self.top = nn.Sequential(nn.Linear(dim + n * (n - 1) // 2, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("tri", torch.tril_indices(n, n, -1))

    def forward(self, dense, sparse):
        d = self.bottom(dense)
        e = [t(sparse[:, i:i + 1]) for i, t in enumerate(self.tables)]
        z = torch.stack([d] + e, dim=1)
        inter = (z @ z.transpose(1, 2))[:, self.tri[0], self.tri[1]]
        return self.top(torch.cat([d, inter], dim=1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--shards", nargs="+", required=True)
    ap.add_argument("--weights", default="class_weights.npy")
    args = ap.parse_args()

    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    loader_kwargs = {"batch_size": 4096, "shuffle": True, "num_workers": 6}
    if cuda:
        loader_kwargs.update({"pin_memory": True, "persistent_workers": True})

    weights = torch.from_numpy(np.load(args.weights)).float()
    if cuda:
        weights = weights.pin_memory()
    weights = weights.to(device, non_blocking=True)

    model = DLRM().to(device)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for shard in args.shards:
        loader = DataLoader(CriteoShard(shard), **loader_kwargs)
        model.train()
        total = torch.zeros((), device=device)
        for dense, sparse, label in loader:
            dense = dense.to(device, non_blocking=True)
            sparse = sparse.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(dense, sparse), label.float(), weight=weights[label])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        print(shard, "loss", total.item() / len(loader))
    torch.save(model.state_dict(), "dlrm.pt")


if __name__ == "__main__":
    main()

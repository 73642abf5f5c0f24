import argparse

import numpy as np
import pandas as pd
import torch
import torch.nn as nn


def load(path):
    df = pd.read_parquet(path)
    y = torch.tensor(df.pop("target").values, dtype=torch.float32)
    x = torch.tensor(df.values, dtype=torch.float32)
    return x, y


def batches(x, y, bs, rng):
    order = rng.permutation(len(x))
    for s in range(0, len(x), bs):
        idx = torch.from_numpy(order[s:s + bs])
        yield x[idx], y[idx]


class MLP(nn.Module):
    def __init__(self, d, h=1024):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(0.1),
                                 nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def fit(args):
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    x, y = load(args.data)
    n_val = len(x) // 10
    xv, yv = x[:n_val].to("cuda"), y[:n_val].to("cuda")
    x, y = x[n_val:], y[n_val:]

    model = MLP(x.size(1)).to("cuda")
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    crit = nn.MSELoss()
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in batches(x, y, args.bs, rng):
            xb = xb.pin_memory().to("cuda")
            yb = yb.pin_memory().to("cuda")
            opt.zero_grad()
            loss = crit(model(xb), yb)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            val = crit(model(xv), yv)
        print(f"{epoch:03d} val rmse {val.sqrt().item():.5f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="train.parquet")
    p.add_argument("--bs", type=int, default=8192)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--seed", type=int, default=0)
    fit(p.parse_args())

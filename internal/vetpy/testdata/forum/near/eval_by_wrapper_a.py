"""Tabular model; eval() and no_grad come from a context manager that restores the mode."""
import contextlib
import functools
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dev = torch.device("cuda")


@contextlib.contextmanager
def evaluating(*nets):
    modes = [n.training for n in nets]
    for n in nets:
        n.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for n, m in zip(nets, modes):
            n.train(m)


def in_eval(fn):
    @functools.wraps(fn)
    def inner(net, *a, **kw):
        with evaluating(net):
            return fn(net, *a, **kw)
    return inner


@in_eval
def rmse(net, loader):
    s, n = torch.zeros((), device=dev), 0
    for x, y in loader:
        x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
        s += (net(x).squeeze(1) - y).square().sum()
        n += y.numel()
    return (s / n).sqrt().item()


def sets(path):
    z = np.load(path)
    x = torch.from_numpy(z["x"].astype(np.float32))
    y = torch.from_numpy(z["y"].astype(np.float32))
    k = int(0.8 * len(x))
    return TensorDataset(x[:k], y[:k]), TensorDataset(x[k:], y[k:])


def main():
    tr, va = sets("housing.npz")
    train = DataLoader(tr, 512, shuffle=True, num_workers=2, pin_memory=True)
    valid = DataLoader(va, 2048, num_workers=2, pin_memory=True)
    d = tr.tensors[0].shape[1]
    net = nn.Sequential(nn.Linear(d, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.3),
                        nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 1)).to(dev)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    step = 0
    net.train()
    for epoch in range(50):
        for x, y in train:
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            loss = nn.functional.mse_loss(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 500 == 0:
                print(step, "valid rmse", rmse(net, valid))


main()

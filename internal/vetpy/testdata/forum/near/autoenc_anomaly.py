import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from sensors import WindowDataset


class AE(nn.Module):
    def __init__(self, d=64, z=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, z))
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x):
        return self.dec(self.enc(x))


def run_epoch(model, loader, device, optimizer=None):
    training = optimizer is not None
    model.train(training)
    running = torch.zeros((), device=device)
    with torch.set_grad_enabled(training):
        for x in loader:
            x = x.to(device, non_blocking=True)
            loss = nn.functional.mse_loss(model(x), x)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            running += loss.detach()
    return running.item() / len(loader)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--train", default="train.npy")
    ap.add_argument("--val", default="val.npy")
    ap.add_argument("--epochs", type=int, default=50)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kw = dict(batch_size=1024, num_workers=2, pin_memory=True)
    train_loader = DataLoader(WindowDataset(args.train), shuffle=True, **kw)
    val_loader = DataLoader(WindowDataset(args.val), **kw)
    model = AE().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best = float("inf")
    for epoch in range(args.epochs):
        tr = run_epoch(model, train_loader, device, optimizer)
        va = run_epoch(model, val_loader, device)
        print(f"{epoch:3d} train {tr:.5f} val {va:.5f}")
        if va < best:
            best = va
            torch.save(model.state_dict(), "ae.pt")


if __name__ == "__main__":
    main()

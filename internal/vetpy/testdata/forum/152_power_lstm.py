"""Household power forecast. stateful LSTM

I got "Trying to backward through the graph a second time" so I added what the
error message told me. Now every iteration is slower than the last one :(
"""
import numpy as np
import pandas as pd
import torch
from torch import nn

SEQ = 48
BATCH = 64
HIDDEN = 256
NOISE = 0.02

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Forecaster(nn.Module):
    def __init__(self, n_feat):
        super().__init__()
        self.lstm = nn.LSTM(n_feat, HIDDEN, num_layers=2, batch_first=True)
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, x, state):
        y, state = self.lstm(x, state)
        return self.head(y).squeeze(-1), state


def load(path):
    df = pd.read_csv(path, sep=";", na_values="?", low_memory=False).dropna()
    cols = ["Global_active_power", "Voltage", "Global_intensity"]
    a = df[cols].to_numpy(dtype=np.float32)
    return (a - a.mean(0)) / a.std(0)


def batchify(a):
    """(T, F) -> list of consecutive (x, y), all already on the card."""
    t = (len(a) // BATCH) * BATCH
    a = torch.from_numpy(a[:t]).reshape(BATCH, -1, a.shape[1]).to(dev)
    out = []
    for s in range(0, a.shape[1] - SEQ - 1, SEQ):
        out.append((a[:, s:s + SEQ], a[:, s + 1:s + SEQ + 1, 0]))
    return out


def evaluate(model, chunks):
    model.eval()
    state, total = None, 0.0
    with torch.no_grad():
        for x, y in chunks:
            pred, state = model(x, state)
            total = total + nn.functional.mse_loss(pred, y)
    model.train()
    return (total / len(chunks)).item()


def main():
    data = load("household_power_consumption.txt")
    cut = int(len(data) * 0.8)
    train, val = batchify(data[:cut]), batchify(data[cut:])
    model = Forecaster(data.shape[1]).to(dev)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    crit = nn.MSELoss()

    for epoch in range(20):
        h = torch.zeros(2, BATCH, HIDDEN, device=dev)
        c = torch.zeros(2, BATCH, HIDDEN, device=dev)
        running = torch.zeros((), device=dev)
        for x, y in train:
            x = x + NOISE * torch.randn(x.shape).to(dev)   # jitter
            pred, (h, c) = model(x, (h, c))
            loss = crit(pred, y)
            opt.zero_grad()
            loss.backward(retain_graph=True)
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            running += loss.detach()
        print(f"{epoch}: train {running.item() / len(train):.4f}  val {evaluate(model, val):.4f}")


if __name__ == "__main__":
    main()

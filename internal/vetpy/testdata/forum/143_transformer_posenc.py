import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from electricity import WindowDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=2000):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.pe = pe.unsqueeze(0)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)].to(x.device)


class Forecaster(nn.Module):
    def __init__(self, n_feat, d=128, heads=8, layers=3, horizon=24):
        super().__init__()
        self.inp = nn.Linear(n_feat, d)
        self.pos = PositionalEncoding(d)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, heads, 4 * d, batch_first=True), layers)
        self.out = nn.Linear(d, horizon)

    def forward(self, x):
        return self.out(self.enc(self.pos(self.inp(x)))[:, -1])


def evaluate(model, loader):
    model.eval()
    se = torch.zeros((), device=device)
    n = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            se += (model(x) - y).pow(2).sum()
            n += y.numel()
    return se.item() / n


train_dl = DataLoader(WindowDataset("train.parquet"), 256, shuffle=True, num_workers=4, pin_memory=True)
val_dl = DataLoader(WindowDataset("val.parquet"), 512, num_workers=4, pin_memory=True)
model = Forecaster(n_feat=7).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for epoch in range(20):
    model.train()
    for x, y in train_dl:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
    print(epoch, evaluate(model, val_dl))

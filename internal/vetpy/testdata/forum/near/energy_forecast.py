import numpy as np
import pandas as pd
import torch
import torch.nn as nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LOOK, AHEAD = 168, 24


def windows(df):
    a = torch.tensor(df.values, dtype=torch.float32, device=DEVICE)
    w = a.unfold(0, LOOK + AHEAD, 1).transpose(1, 2)
    return w[:, :LOOK], w[:, LOOK:, 0]


class Forecaster(nn.Module):
    def __init__(self, d, h=128):
        super().__init__()
        self.lstm = nn.LSTM(d, h, 2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(h, AHEAD)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.out(y[:, -1])


df = pd.read_csv("load.csv", index_col=0, parse_dates=True)
mu, sd = df[:"2022"].mean(), df[:"2022"].std()
df = (df - mu) / sd
xt, yt = windows(df[:"2022"])
xv, yv = windows(df["2023":])

model = Forecaster(df.shape[1]).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=5)
loss_fn = nn.L1Loss()

best, bad = np.inf, 0
for epoch in range(200):
    model.train()
    for idx in torch.randperm(len(xt), device=DEVICE).split(256):
        opt.zero_grad()
        loss = loss_fn(model(xt[idx]), yt[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()

    model.eval()
    with torch.no_grad():
        val = loss_fn(model(xv), yv).item()
    plateau.step(val)
    print(f"epoch {epoch} val mae {val * sd.iloc[0]:.3f}")
    if val < best:
        best, bad = val, 0
        torch.save(model.state_dict(), "forecaster.pt")
    else:
        bad += 1
        if bad > 15:
            break

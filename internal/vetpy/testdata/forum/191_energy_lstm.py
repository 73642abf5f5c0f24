# Forecast hourly energy demand with an LSTM. Loss stays flat, any ideas?
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WINDOW = 168
HORIZON = 24
EPOCHS = 40


class EnergyDataset(Dataset):
    def __init__(self, values):
        self.values = torch.tensor(values, dtype=torch.float32)

    def __len__(self):
        return len(self.values) - WINDOW - HORIZON

    def __getitem__(self, i):
        x = self.values[i:i + WINDOW]
        y = self.values[i + WINDOW:i + WINDOW + HORIZON, 0]
        return x, y


class Forecaster(nn.Module):
    def __init__(self, n_features, hidden=128, layers=2):
        super().__init__()
        self.lstm = nn.LSTM(n_features, hidden, layers, batch_first=True, dropout=0.2)
        self.head = nn.Linear(hidden, HORIZON)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


def load_csv(path):
    df = pd.read_csv(path, parse_dates=["timestamp"]).set_index("timestamp")
    df["hour"] = np.sin(2 * np.pi * df.index.hour / 24)
    df["dow"] = np.sin(2 * np.pi * df.index.dayofweek / 7)
    vals = df[["load", "temp", "hour", "dow"]].values
    n = int(0.8 * len(vals))
    mean, std = vals[:n].mean(0), vals[:n].std(0)
    vals = (vals - mean) / std
    return vals[:n], vals[n:]


device = "cuda" if torch.cuda.is_available() else "cpu"
train_vals, test_vals = load_csv("energy.csv")
train_dl = DataLoader(EnergyDataset(train_vals), batch_size=256, shuffle=True)
test_dl = DataLoader(EnergyDataset(test_vals), batch_size=512)

model = Forecaster(n_features=4).to(device)
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)

for epoch in range(EPOCHS):
    scheduler.step()
    model.train()
    train_loss = torch.zeros((), device=device)
    for x, y in train_dl:
        x, y = x.to(device), y.to(device)
        pred = model(x)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        train_loss += loss.detach()

    model.eval()
    test_loss = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in test_dl:
            x, y = x.to(device), y.to(device)
            test_loss += loss_fn(model(x), y)
    print(f"Epoch {epoch}: train {train_loss.item() / len(train_dl):.4f} "
          f"test {test_loss.item() / len(test_dl):.4f}")

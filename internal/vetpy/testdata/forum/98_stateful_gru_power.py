import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cuda")
WIN, BATCH, HID = 96, 32, 128


class PowerWindows(Dataset):
    def __init__(self, arr):
        self.arr = torch.tensor(arr, dtype=torch.float32)
        self.n = (len(self.arr) - 1) // WIN

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = i * WIN
        return self.arr[s:s + WIN], self.arr[s + 1:s + WIN + 1, :1]


class Net(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.gru = nn.GRU(n_in, HID, num_layers=2, batch_first=True, dropout=0.2)
        self.fc = nn.Linear(HID, 1)

    def forward(self, x, h):
        y, h = self.gru(x, h)
        return self.fc(y), h


series = np.load("household_power.npy")
split = int(0.8 * len(series))
train_dl = DataLoader(PowerWindows(series[:split]), batch_size=BATCH, shuffle=False, drop_last=True, num_workers=2)
test_dl = DataLoader(PowerWindows(series[split:]), batch_size=BATCH, shuffle=False, drop_last=True, num_workers=2)

model = Net(series.shape[1]).to(DEVICE)
loss_fn = nn.MSELoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
history = []

for epoch in range(40):
    model.train()
    h = torch.zeros(2, BATCH, HID, device=DEVICE)
    running = torch.zeros((), device=DEVICE)
    for xb, yb in train_dl:
        xb = xb.to(DEVICE, non_blocking=True)
        yb = yb.to(DEVICE, non_blocking=True)
        opt.zero_grad()
        pred, h = model(xb, h)
        loss = loss_fn(pred, yb)
        loss.backward()
        opt.step()
        running += loss.detach()
    history.append(running.item() / len(train_dl))
    print("epoch", epoch, history[-1])

model.eval()
with torch.no_grad():
    h = torch.zeros(2, BATCH, HID, device=DEVICE)
    errs = []
    for xb, yb in test_dl:
        pred, h = model(xb.to(DEVICE), h)
        errs.append(loss_fn(pred, yb.to(DEVICE)))
print("test mse", torch.stack(errs).mean().item())
plt.plot(history)
plt.savefig("loss.png")

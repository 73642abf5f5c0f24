import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from stocks import Windows


class Forecast(nn.Module):
    def __init__(self, n_feat, hid=128):
        super().__init__()
        self.lstm = nn.LSTM(n_feat, hid, num_layers=3, dropout=0.3, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(hid, 1)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.head(self.drop(h[:, -1]))


def train_epoch(model, loader, loss_fn, optimizer, device):
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def test_epoch(model, loader, loss_fn, device):
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = loss_fn(model(x), y)
        total += loss.item()
    return total / len(loader)


device = "cuda"
model = Forecast(12).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
train_loader = DataLoader(Windows("train.npz"), batch_size=64, shuffle=True)
test_loader = DataLoader(Windows("test.npz"), batch_size=64)
for epoch in range(100):
    tr = train_epoch(model, train_loader, loss_fn, optimizer, device)
    te = test_epoch(model, test_loader, loss_fn, device)
    print(epoch, tr, te)

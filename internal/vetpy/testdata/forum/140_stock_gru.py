import numpy as np
import pandas as pd
import torch
import torch.nn as nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SEQ, BATCH, HID = 60, 16, 128


class StockGRU(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.gru = nn.GRU(n_in, HID, num_layers=2, batch_first=True)
        self.fc = nn.Linear(HID, 1)
        self.h = None

    def reset(self):
        self.h = None

    def forward(self, x):
        out, self.h = self.gru(x, self.h)
        return self.fc(out).squeeze(-1)


df = pd.read_csv("spy.csv")
feats = df[["open", "high", "low", "close", "volume"]].pct_change().fillna(0).values.astype(np.float32)
target = np.roll(feats[:, 3], -1)
n = len(feats) // BATCH * BATCH
X = torch.from_numpy(feats[:n]).view(BATCH, -1, 5).to(device)
Y = torch.from_numpy(target[:n]).view(BATCH, -1).to(device)

model = StockGRU(5).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
train_losses = []

for epoch in range(100):
    model.train()
    model.reset()
    epoch_loss = torch.zeros((), device=device)
    steps = 0
    for s in range(0, X.size(1) - SEQ, SEQ):
        optimizer.zero_grad()
        pred = model(X[:, s:s + SEQ])
        loss = criterion(pred, Y[:, s:s + SEQ])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.detach()
        steps += 1
    train_losses.append(epoch_loss.item() / steps)
    if epoch % 10 == 0:
        print("Epoch", epoch, "MSE", train_losses[-1])

import glob

import numpy as np
import torch
import torch.nn as nn


class Points(nn.Module):
    def __init__(self, n_cls):
        super().__init__()
        self.mlp1 = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(),
                                  nn.Conv1d(64, 1024, 1), nn.BatchNorm1d(1024), nn.ReLU())
        self.mlp2 = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, n_cls))

    def forward(self, x):
        return self.mlp2(self.mlp1(x).max(dim=2).values)


def load(pattern):
    xs, ys = [], []
    for f in sorted(glob.glob(pattern)):
        z = np.load(f)
        xs.append(z["points"].astype(np.float32))
        ys.append(z["label"].astype(np.int64))
    return torch.from_numpy(np.concatenate(xs)), torch.from_numpy(np.concatenate(ys))


def batches(x, y, bs):
    perm = torch.randperm(len(x))
    for i in range(0, len(x) - bs + 1, bs):
        idx = perm[i:i + bs]
        yield x[idx], y[idx]


device = torch.device("cuda")
X, Y = load("modelnet40/train_*.npz")
model = Points(40).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()

for epoch in range(150):
    model.train()
    for x, y in batches(X, Y, 32):
        x = x.transpose(1, 2).contiguous().pin_memory().to(device)
        y = y.pin_memory().to(device)
        opt.zero_grad()
        loss = ce(model(x), y)
        loss.backward()
        opt.step()
    if epoch % 10 == 0:
        print(epoch, loss.item())
torch.save(model.state_dict(), "pointnet.pt")

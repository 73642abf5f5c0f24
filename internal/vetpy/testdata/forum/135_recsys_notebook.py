# %%
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

# %%
ratings = pd.read_csv("ml-1m/ratings.csv")
u = torch.tensor(ratings.user.astype("category").cat.codes.values.copy(), dtype=torch.long)
m = torch.tensor(ratings.movie.astype("category").cat.codes.values.copy(), dtype=torch.long)
r = torch.tensor(ratings.rating.values, dtype=torch.float32)
n = len(r)
idx = torch.randperm(n)
tr, va = idx[: int(0.9 * n)], idx[int(0.9 * n):]
train_dl = DataLoader(TensorDataset(u[tr], m[tr], r[tr]), batch_size=2048, shuffle=True)
val_dl = DataLoader(TensorDataset(u[va], m[va], r[va]), batch_size=8192)


# %%
class NeuMF(nn.Module):
    def __init__(self, nu, nm, d=32):
        super().__init__()
        self.ue, self.me = nn.Embedding(nu, d), nn.Embedding(nm, d)
        self.mlp = nn.Sequential(nn.Linear(2 * d, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1))

    def forward(self, u, m):
        return self.mlp(torch.cat([self.ue(u), self.me(m)], 1)).squeeze(1)


# %%
device = "cuda"
model = NeuMF(int(u.max()) + 1, int(m.max()) + 1).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
mse = nn.MSELoss()

# %%
for epoch in range(8):
    model.train()
    for ub, mb, rb in train_dl:
        ub, mb, rb = ub.to(device), mb.to(device), rb.to(device)
        loss = mse(model(ub, mb), rb)
        loss.backward()
        opt.step()
    opt.zero_grad()

    model.eval()
    val_preds, val_true = [], []
    for ub, mb, rb in val_dl:
        pred = model(ub.to(device), mb.to(device))
        val_preds.append(pred)
        val_true.append(rb)
    rmse = (torch.cat(val_preds).cpu() - torch.cat(val_true)).pow(2).mean().sqrt()
    print(epoch, rmse.item())

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
inter = np.load("interactions.npy")
item_feats = torch.from_numpy(np.load("item_features.npy")).float()
n_users = int(inter[:, 0].max()) + 1


class TwoTower(nn.Module):
    def __init__(self, n_users, d_item, d=64):
        super().__init__()
        self.user = nn.Embedding(n_users, d)
        self.item = nn.Sequential(nn.Linear(d_item, 256), nn.ReLU(), nn.Linear(256, d))

    def forward(self, u, feats):
        return F.normalize(self.user(u), dim=1), F.normalize(self.item(feats), dim=1)


rng = np.random.default_rng(0)
perm = rng.permutation(len(inter))
split = int(0.9 * len(inter))
train, test = torch.from_numpy(inter[perm[:split]]).long(), torch.from_numpy(inter[perm[split:]]).long()
train_dl = DataLoader(TensorDataset(train), batch_size=4096, shuffle=True, pin_memory=True, drop_last=True)
test_dl = DataLoader(TensorDataset(test), batch_size=1024, pin_memory=True)
model = TwoTower(n_users, item_feats.size(1)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    model.train()
    for (pairs,) in train_dl:
        pairs = pairs.to(device, non_blocking=True)
        feats = item_feats.to(device)
        u, v = model(pairs[:, 0], feats[pairs[:, 1]])
        loss = F.cross_entropy(u @ v.t() / 0.1, torch.arange(len(pairs), device=device))
        opt.zero_grad()
        loss.backward()
        opt.step()

    model.eval()
    hits = torch.zeros((), device=device)
    with torch.no_grad():
        all_items = F.normalize(model.item(item_feats.to(device)), dim=1)
        for (pairs,) in test_dl:
            pairs = pairs.to(device, non_blocking=True)
            u = F.normalize(model.user(pairs[:, 0]), dim=1)
            top = (u @ all_items.t()).topk(10, dim=1).indices
            hits += (top == pairs[:, 1:2]).any(1).sum()
            print("running hits", hits)
    print(epoch, hits.item() / len(test))

import sys
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

FIELDS = 26
DENSE = 13


class DeepFM(nn.Module):
    def __init__(self, sizes, k=16):
        super().__init__()
        offs = torch.tensor([0] + sizes[:-1]).cumsum(0)
        self.register_buffer("offs", offs)
        self.w = nn.Embedding(sum(sizes), 1)
        self.v = nn.Embedding(sum(sizes), k)
        nn.init.normal_(self.v.weight, std=0.01)
        nn.init.zeros_(self.w.weight)
        self.dense = nn.Linear(DENSE, 1)
        self.mlp = nn.Sequential(
            nn.Linear(FIELDS * k + DENSE, 400), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(400, 400), nn.ReLU(), nn.Dropout(0.5), nn.Linear(400, 1))

    def forward(self, cat, num):
        idx = cat + self.offs
        e = self.v(idx)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        lin = self.w(idx).sum(1) + self.dense(num)
        deep = self.mlp(torch.cat([e.flatten(1), num], 1))
        return (fm + lin + deep).squeeze(1)


def load(path):
    z = np.load(path)
    cat = torch.from_numpy(z["cat"]).long()
    num = torch.from_numpy(np.log1p(z["num"])).float()
    y = torch.from_numpy(z["y"]).float()
    return TensorDataset(cat, num, y), z["sizes"].tolist()


def logloss(model, loader, crit):
    model.eval()
    s = torch.zeros((), device="cuda")
    with torch.no_grad():
        for cat, num, y in loader:
            cat, num, y = cat.cuda(non_blocking=True), num.cuda(non_blocking=True), y.cuda(non_blocking=True)
            s += crit(model(cat, num), y)
    return s.item() / len(loader)


if __name__ == "__main__":
    train_ds, sizes = load(sys.argv[1])
    valid_ds, _ = load(sys.argv[2])
    train_loader = DataLoader(train_ds, batch_size=4096, shuffle=True, num_workers=4, pin_memory=True)
    valid_loader = DataLoader(valid_ds, batch_size=8192, num_workers=4, pin_memory=True)
    model = DeepFM(sizes).cuda()
    crit = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(5):
        model.train()
        optimizer.zero_grad()
        total_loss = 0
        for i, (cat, num, y) in enumerate(train_loader):
            cat = cat.cuda(non_blocking=True)
            num = num.cuda(non_blocking=True)
            y = y.cuda(non_blocking=True)
            loss = crit(model(cat, num), y)
            loss.backward()
            optimizer.step()
            total_loss = total_loss + loss
            if (i + 1) % 500 == 0:
                print('epoch %d, batch %d, avg loss %.5f' % (epoch, i + 1, total_loss.item() / (i + 1)))
        print('epoch %d valid logloss %.5f' % (epoch, logloss(model, valid_loader, crit)))
        torch.save(model.state_dict(), 'deepfm_%d.pt' % epoch)

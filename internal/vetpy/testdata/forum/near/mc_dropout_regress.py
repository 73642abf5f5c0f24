import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, d, p=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(p),
                                 nn.Linear(256, 256), nn.ReLU(), nn.Dropout(p), nn.Linear(256, 2))

    def forward(self, x):
        mu, log_var = self.net(x).chunk(2, 1)
        return mu.squeeze(1), log_var.squeeze(1)


def nll(mu, lv, y):
    return (0.5 * torch.exp(-lv) * (y - mu) ** 2 + 0.5 * lv).mean()


@torch.no_grad()
def mc_predict(model, x, n=50):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    mus = torch.stack([model(x)[0] for _ in range(n)])
    model.eval()
    return mus.mean(0), mus.std(0)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    d = np.load("uci_protein.npz")
    x = torch.from_numpy(d["x"]).float()
    y = torch.from_numpy(d["y"]).float()
    n = int(0.9 * len(x))
    loader = DataLoader(TensorDataset(x[:n], y[:n]), batch_size=1024, shuffle=True, pin_memory=True)
    xv, yv = x[n:].to(device), y[n:].to(device)
    model = Net(x.size(1)).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(100):
        model.train()
        tot = torch.zeros((), device=device)
        for xb, yb in loader:
            xb, yb = xb.to(device, non_blocking=True), yb.to(device, non_blocking=True)
            opt.zero_grad()
            mu, lv = model(xb)
            loss = nll(mu, lv, yb)
            loss.backward()
            opt.step()
            tot += loss.detach()
        if epoch % 10 == 0:
            m, s = mc_predict(model, xv)
            rmse = (m - yv).pow(2).mean().sqrt()
            print(f"{epoch} nll {tot.item() / len(loader):.4f} rmse {rmse.item():.4f} std {s.mean().item():.4f}")


if __name__ == "__main__":
    main()

"""Uncertainty by MC dropout: at test time dropout layers are put back in train mode on purpose."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def net(d):
    return nn.Sequential(nn.Linear(d, 200), nn.BatchNorm1d(200), nn.ReLU(), nn.Dropout(0.2),
                         nn.Linear(200, 200), nn.BatchNorm1d(200), nn.ReLU(), nn.Dropout(0.2), nn.Linear(200, 2))


def nll(out, y):
    mu, logvar = out.unbind(-1)
    return 0.5 * (logvar + (y - mu).square() * (-logvar).exp()).mean()


def mc_predict(model, x, k=50):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    with torch.no_grad():
        outs = torch.stack([model(x) for _ in range(k)])
    model.eval()
    mu, logvar = outs.unbind(-1)
    return mu.mean(0), (mu.var(0) + logvar.exp().mean(0)).sqrt()


def main():
    z = np.load("concrete.npz")
    x = torch.from_numpy(z["x"]).float()
    y = torch.from_numpy(z["y"]).float()
    x = (x - x.mean(0)) / x.std(0)
    y = (y - y.mean()) / y.std()
    k = int(0.9 * len(x))
    # 1000 rows: everything lives on the device, no workers and no pinning wanted
    x, y = x.to(dev), y.to(dev)
    loader = DataLoader(TensorDataset(x[:k], y[:k]), 64, shuffle=True, drop_last=True)
    model = net(x.size(1)).to(dev)
    opt = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-4)
    for epoch in range(300):
        model.train()
        for xb, yb in loader:
            loss = nll(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 50 == 49:
            mu, sd = mc_predict(model, x[k:])
            err = (mu - y[k:]).abs()
            inside = (err < 1.96 * sd).float().mean()
            print(f"{epoch + 1} nll {loss.item():.3f} mae {err.mean().item():.3f} coverage {inside.item():.3f}")


if __name__ == "__main__":
    main()

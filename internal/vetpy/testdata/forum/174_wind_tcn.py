"""Wind power 24h ahead, TCN with quantile loss."""
import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import DataLoader, Dataset

QUANTILES = (0.1, 0.5, 0.9)
HORIZON = 24
CONTEXT = 168


class WindWindows(Dataset):
    def __init__(self, arr):
        self.arr = torch.from_numpy(arr.astype(np.float32))

    def __len__(self):
        return len(self.arr) - CONTEXT - HORIZON

    def __getitem__(self, i):
        w = self.arr[i:i + CONTEXT + HORIZON]
        return w[:CONTEXT].t().contiguous(), w[CONTEXT:, 0]


class Residual(nn.Module):
    def __init__(self, ci, co, dil):
        super().__init__()
        self.pad = (2 * dil, 0)
        self.conv = weight_norm(nn.Conv1d(ci, co, 3, dilation=dil))
        self.drop = nn.Dropout(0.1)
        self.skip = nn.Conv1d(ci, co, 1)

    def forward(self, x):
        y = self.conv(nn.functional.pad(x, self.pad))
        return self.drop(torch.relu(y)) + self.skip(x)


class TCN(nn.Module):
    def __init__(self, n_feat, ch=64):
        super().__init__()
        dims = [n_feat] + [ch] * 5
        self.net = nn.Sequential(*[Residual(a, b, 2 ** i) for i, (a, b) in enumerate(zip(dims, dims[1:]))])
        self.dec = nn.Sequential(nn.Linear(ch + 2, 64), nn.ReLU(), nn.Linear(64, len(QUANTILES)))

    def forward(self, x):
        h = self.net(x)[..., -1]
        hour = torch.linspace(0, 2 * np.pi, HORIZON)
        hour = torch.stack([hour.sin(), hour.cos()], -1).cuda()
        h = torch.cat([h.unsqueeze(1).expand(-1, HORIZON, -1), hour.expand(h.size(0), -1, -1)], -1)
        return self.dec(h)


class PinballLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.tensor(QUANTILES))

    def forward(self, pred, y):
        e = y.unsqueeze(-1) - pred
        return torch.maximum(self.q * e, (self.q - 1) * e).mean()


def main():
    arr = np.load("wind_farm.npy")
    mu, sd = arr.mean(0), arr.std(0)
    arr = (arr - mu) / sd
    cut = int(0.85 * len(arr))
    train = DataLoader(WindWindows(arr[:cut]), 256, shuffle=True, num_workers=4, pin_memory=True)
    test = DataLoader(WindWindows(arr[cut:]), 512, num_workers=4, pin_memory=True)
    model, crit = TCN(arr.shape[1]).cuda(), PinballLoss().cuda()
    opt = torch.optim.Adam(model.parameters(), 1e-3)

    for epoch in range(25):
        model.train()
        sq_err, n = 0.0, 0
        for x, y in train:
            pred = model(x.cuda(non_blocking=True))
            loss = crit(pred, y.cuda(non_blocking=True))
            opt.zero_grad()
            loss.backward()
            opt.step()
            # rmse in MW
            p = pred[..., 1].detach().cpu().numpy() * sd[0] + mu[0]
            t = y.numpy() * sd[0] + mu[0]
            sq_err += ((p - t) ** 2).sum()
            n += t.size
        model.eval()
        tot = torch.zeros((), device="cuda")
        with torch.no_grad():
            for x, y in test:
                tot += crit(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        print(f"{epoch:2d} train rmse {np.sqrt(sq_err / n):.3f} MW   test pinball {tot.item() / len(test):.4f}")


if __name__ == "__main__":
    main()

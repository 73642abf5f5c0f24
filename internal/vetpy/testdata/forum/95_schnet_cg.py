import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class GaussianBasis(nn.Module):
    def __init__(self, n=50, cutoff=5.0):
        super().__init__()
        self.centers = torch.linspace(0.0, cutoff, n)
        self.var = (cutoff / n) ** 2

    def forward(self, d):
        c = self.centers.cuda()
        return torch.exp(-((d.unsqueeze(-1) - c) ** 2) / (2 * self.var))


class Interaction(nn.Module):
    def __init__(self, n_feat=128, n_basis=50):
        super().__init__()
        self.filt = nn.Sequential(nn.Linear(n_basis, n_feat), nn.Softplus(), nn.Linear(n_feat, n_feat))
        self.inp = nn.Linear(n_feat, n_feat, bias=False)
        self.out = nn.Sequential(nn.Linear(n_feat, n_feat), nn.Softplus(), nn.Linear(n_feat, n_feat))

    def forward(self, x, rbf):
        w = self.filt(rbf)
        y = (w * self.inp(x).unsqueeze(1)).sum(2)
        return x + self.out(y)


class CGSchnet(nn.Module):
    def __init__(self, n_types, n_feat=128, n_layers=3):
        super().__init__()
        self.emb = nn.Embedding(n_types, n_feat)
        self.basis = GaussianBasis()
        self.layers = nn.ModuleList([Interaction(n_feat) for _ in range(n_layers)])
        self.head = nn.Linear(n_feat, 1)

    def forward(self, coords, types):
        d = torch.cdist(coords, coords)
        rbf = self.basis(d)
        x = self.emb(types)
        for l in self.layers:
            x = l(x, rbf)
        return self.head(x).sum((1, 2))


def train(net, loader, epochs, device):
    opt = torch.optim.Adam(net.parameters(), lr=3e-4)
    for epoch in range(epochs):
        tot = torch.zeros((), device=device)
        for coords, forces, types in loader:
            coords = coords.to(device, non_blocking=True).requires_grad_(True)
            forces, types = forces.to(device, non_blocking=True), types.to(device, non_blocking=True)
            energy = net(coords, types)
            pred = -torch.autograd.grad(energy.sum(), coords, create_graph=True)[0]
            loss = ((pred - forces) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.detach()
        print(epoch, tot.item() / len(loader))


if __name__ == "__main__":
    raw = np.load("chignolin.npz")
    ds = TensorDataset(torch.from_numpy(raw["xyz"]).float(), torch.from_numpy(raw["f"]).float(),
                       torch.from_numpy(raw["types"]).long())
    loader = DataLoader(ds, batch_size=512, shuffle=True, num_workers=2, pin_memory=True)
    model = CGSchnet(n_types=26).to("cuda")
    train(model, loader, 50, "cuda")

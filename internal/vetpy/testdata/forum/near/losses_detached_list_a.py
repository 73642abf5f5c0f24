"""Fit a NeRF-like coordinate MLP to one image, keep every loss for the plot."""
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torchvision.io as io


class Siren(nn.Module):
    def __init__(self, w=256, depth=4, omega=30.0):
        super().__init__()
        self.omega = omega
        self.layers = nn.ModuleList([nn.Linear(2 if i == 0 else w, w) for i in range(depth)])
        self.out = nn.Linear(w, 3)
        with torch.no_grad():
            for i, l in enumerate(self.layers):
                b = 0.5 if i == 0 else (6 / w) ** 0.5 / omega
                l.weight.uniform_(-b, b)

    def forward(self, x):
        for l in self.layers:
            x = torch.sin(self.omega * l(x))
        return self.out(x)


def main(path):
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    img = io.read_image(path, io.ImageReadMode.RGB).to(dev).float() / 127.5 - 1
    _, h, w = img.shape
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h, device=dev), torch.linspace(-1, 1, w, device=dev), indexing="ij")
    coords = torch.stack([ys, xs], -1).reshape(-1, 2)
    target = img.permute(1, 2, 0).reshape(-1, 3)

    net = Siren().to(dev)
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    losses = []
    best, best_state = None, None
    for it in range(3000):
        pick = torch.randint(0, coords.size(0), (65536,), device=dev)
        loss = (net(coords[pick]) - target[pick]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss = loss.detach()
        losses.append(loss)
        if it % 250 == 249:
            window = torch.stack(losses[-250:]).mean().item()
            print(f"{it + 1}: mse {window:.6f}")
            if best is None or window < best:
                best = window
                best_state = {k: v.detach().clone() for k, v in net.state_dict().items()}

    curve = torch.stack(losses).cpu().numpy()
    plt.semilogy(curve)
    plt.savefig("siren_loss.png")
    torch.save(best_state, "siren.pt")


if __name__ == "__main__":
    main(sys.argv[1])

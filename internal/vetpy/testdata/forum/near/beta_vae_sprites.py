import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class BetaVAE(nn.Module):
    def __init__(self, z=10):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU(),
                                 nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4096, 2 * z))
        self.fc = nn.Linear(z, 4096)
        self.dec = nn.Sequential(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
                                 nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1))

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(self.fc(z).view(-1, 64, 8, 8)), mu, lv


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--npz", default="dsprites.npz")
    ap.add_argument("--beta", type=float, default=4.0)
    ap.add_argument("--steps", type=int, default=300000)
    args = ap.parse_args()
    device = torch.device("cuda")
    imgs = torch.from_numpy(np.load(args.npz)["imgs"]).to(device)
    model = BetaVAE().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    log = {"rec": [], "kl": []}
    model.train()
    for step in range(1, args.steps + 1):
        x = imgs[torch.randint(len(imgs), (64,), device=device)].float().unsqueeze(1)
        rec, mu, lv = model(x)
        rec_loss = F.binary_cross_entropy_with_logits(rec, x, reduction="sum") / x.size(0)
        kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
        loss = rec_loss + args.beta * kl
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 1000 == 0:
            log["rec"].append(rec_loss.item())
            log["kl"].append(kl.item())
            print(f"{step} rec {log['rec'][-1]:.2f} kl {log['kl'][-1]:.2f}")
    torch.save({"model": model.state_dict(), "log": log}, "bvae.pt")


if __name__ == "__main__":
    main()

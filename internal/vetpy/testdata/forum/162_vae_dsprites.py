import argparse
import logging
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)


class BetaVAE(nn.Module):
    def __init__(self, z_dim=10):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 2 * z_dim))
        self.decoder = nn.Sequential(
            nn.Linear(z_dim, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(), nn.Unflatten(1, (64, 4, 4)),
            nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1))

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def elbo(x, recon, mu, logvar, beta):
    rec = nn.functional.binary_cross_entropy_with_logits(recon, x, reduction="sum") / x.size(0)
    kld = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec + beta * kld, rec, kld


class Solver(object):
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda:%d" % args.gpu)
        imgs = np.load(args.npz)["imgs"]
        ds = TensorDataset(torch.from_numpy(imgs).unsqueeze(1))
        self.loader = DataLoader(ds, args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True, drop_last=True)
        self.net = BetaVAE(args.z_dim).to(self.device)
        self.optim = torch.optim.Adam(self.net.parameters(), lr=args.lr, betas=(0.9, 0.999))

    def update(self, loss):
        loss.backward()
        self.optim.zero_grad()
        self.optim.step()

    def train(self):
        self.net.train()
        it, done = 0, False
        while not done:
            for (x,) in self.loader:
                x = x.to(self.device, non_blocking=True).float()
                recon, mu, logvar = self.net(x)
                loss, rec, kld = elbo(x, recon, mu, logvar, self.args.beta)
                self.update(loss)
                it += 1
                if it % 1000 == 0:
                    logger.info("[%d] recon %.3f kld %.3f", it, rec.item(), kld.item())
                if it % 50000 == 0:
                    torch.save({"it": it, "net": self.net.state_dict(), "opt": self.optim.state_dict()},
                               "%s_%d.ckpt" % (self.args.name, it))
                if it >= self.args.max_iter:
                    done = True
                    break


if __name__ == "__main__":
    p = argparse.ArgumentParser(description="beta-VAE")
    p.add_argument("--npz", default="dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz")
    p.add_argument("--name", default="main")
    p.add_argument("--gpu", default=0, type=int)
    p.add_argument("--workers", default=2, type=int)
    p.add_argument("--batch_size", default=64, type=int)
    p.add_argument("--z_dim", default=10, type=int)
    p.add_argument("--beta", default=4.0, type=float)
    p.add_argument("--lr", default=1e-4, type=float)
    p.add_argument("--max_iter", default=500000, type=int)
    logging.basicConfig(stream=sys.stdout, level=logging.INFO)
    Solver(p.parse_args()).train()

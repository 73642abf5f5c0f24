import argparse

import anndata
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, n_genes, latent):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_genes, 512), nn.BatchNorm1d(512), nn.ReLU(),
                                 nn.Linear(512, 128), nn.BatchNorm1d(128), nn.ReLU())
        self.mu = nn.Linear(128, latent)
        self.logvar = nn.Linear(128, latent)

    def forward(self, x):
        h = self.net(x)
        return self.mu(h), self.logvar(h)


class Decoder(nn.Module):
    def __init__(self, n_genes, latent):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 512), nn.ReLU(),
                                 nn.Linear(512, n_genes), nn.Softplus())

    def forward(self, z):
        return self.net(z)


class SharedVAE(nn.Module):
    def __init__(self, n_genes, latent=32):
        super().__init__()
        self.encoder = Encoder(n_genes, latent)
        self.decoder = Decoder(n_genes, latent)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn(mu.size()).cuda()
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.encoder(x)
        z = self.reparameterize(mu, logvar)
        return self.decoder(z), mu, logvar


def elbo(x_hat, x, mu, logvar, beta):
    recon = F.poisson_nll_loss(x_hat, x, log_input=False, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return recon + beta * kl, recon, kl


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--h5ad", default="pbmc.h5ad")
    ap.add_argument("--epochs", type=int, default=200)
    ap.add_argument("--warmup", type=int, default=50)
    args = ap.parse_args()

    adata = anndata.read_h5ad(args.h5ad)
    counts = torch.from_numpy(np.asarray(adata.X.todense(), dtype=np.float32))
    n_val = len(counts) // 10
    device = torch.device("cuda")
    train_dl = DataLoader(TensorDataset(counts[n_val:]), batch_size=256, shuffle=True, drop_last=True,
                          pin_memory=True)
    val_dl = DataLoader(TensorDataset(counts[:n_val]), batch_size=1024, pin_memory=True)

    vae = SharedVAE(counts.shape[1]).to(device)
    optimizer = torch.optim.Adam(vae.encoder.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        beta = min(1.0, epoch / args.warmup)
        vae.train()
        for (x,) in train_dl:
            x = x.to(device, non_blocking=True)
            x_hat, mu, logvar = vae(x)
            loss, _, _ = elbo(x_hat, x, mu, logvar, beta)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        vae.eval()
        val = torch.zeros(2, device=device)
        with torch.no_grad():
            for (x,) in val_dl:
                x = x.to(device, non_blocking=True)
                x_hat, mu, logvar = vae(x)
                _, recon, kl = elbo(x_hat, x, mu, logvar, 1.0)
                val += torch.stack([recon, kl])
        recon, kl = (val / len(val_dl)).tolist()
        print(f"epoch {epoch}: recon {recon:.2f} kl {kl:.2f}")


if __name__ == "__main__":
    main()

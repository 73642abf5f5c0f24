"""Variational graph autoencoder over a sequence of graph snapshots (dynamic link prediction)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch_geometric.nn import GCNConv
from torch_geometric.utils import negative_sampling

from snapshots import load_snapshots


class VGAEStep(nn.Module):
    def __init__(self, x_dim, h_dim, z_dim):
        super().__init__()
        self.phi_x = nn.Sequential(nn.Linear(x_dim, h_dim), nn.ReLU())
        self.enc = GCNConv(2 * h_dim, h_dim)
        self.enc_mu = GCNConv(h_dim, z_dim)
        self.enc_logstd = GCNConv(h_dim, z_dim)
        self.rnn = nn.GRUCell(h_dim + z_dim, h_dim)

    def forward(self, x, edge_index, h):
        px = self.phi_x(x)
        e = F.relu(self.enc(torch.cat([px, h], dim=1), edge_index))
        mu, logstd = self.enc_mu(e, edge_index), self.enc_logstd(e, edge_index)
        z = mu + torch.randn_like(mu) * logstd.exp()
        h = self.rnn(torch.cat([px, z], dim=1), h)
        return z, mu, logstd, h


def recon_loss(z, pos, num_nodes):
    neg = negative_sampling(pos, num_nodes, num_neg_samples=pos.size(1))
    pos_score = (z[pos[0]] * z[pos[1]]).sum(1)
    neg_score = (z[neg[0]] * z[neg[1]]).sum(1)
    return (F.binary_cross_entropy_with_logits(pos_score, torch.ones_like(pos_score))
            + F.binary_cross_entropy_with_logits(neg_score, torch.zeros_like(neg_score)))


def kl(mu, logstd):
    return -0.5 * torch.mean(torch.sum(1 + 2 * logstd - mu ** 2 - (2 * logstd).exp(), dim=1))


def run():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dataset", default="enron10")
    ap.add_argument("--epochs", type=int, default=1000)
    ap.add_argument("--clip", type=float, default=10.0)
    args = ap.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    snaps = [s.to(device) for s in load_snapshots(args.dataset)]
    n, x_dim, h_dim = snaps[0].num_nodes, snaps[0].x.size(1), 32
    model = VGAEStep(x_dim, h_dim, 16).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        h = torch.zeros(n, h_dim, device=device)
        loss = 0
        for snap in snaps[:-3]:
            z, mu, logstd, h = model(snap.x, snap.edge_index, h)
            loss = loss + recon_loss(z, snap.edge_index, n) + kl(mu, logstd) / n
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)

        if epoch % 50 == 0:
            print("epoch", epoch, "loss", loss.item())

    torch.save(model.state_dict(), "vgrnn.pt")


if __name__ == "__main__":
    run()

import inspect
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from graph_data import load_dynamic_graph
from layers import GCNConv, graph_gru_gcn

h_dim, z_dim, n_layers = 32, 16, 1
clip = 10
learning_rate = 1e-2
seq_len = 8
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class VGRNN(nn.Module):
    def __init__(self, x_dim, h_dim, z_dim, n_layers):
        super().__init__()
        self.n_layers, self.h_dim = n_layers, h_dim
        self.phi_x = nn.Sequential(nn.Linear(x_dim, h_dim), nn.ReLU())
        self.enc = GCNConv(2 * h_dim, h_dim)
        self.enc_mean = GCNConv(h_dim, z_dim)
        self.enc_std = GCNConv(h_dim, z_dim)
        self.phi_z = nn.Sequential(nn.Linear(z_dim, h_dim), nn.ReLU())
        self.rnn = graph_gru_gcn(2 * h_dim, h_dim, n_layers)

    def forward(self, xs, edges, adj, h):
        kld, nll = 0, 0
        for t in range(xs.size(0)):
            phi = self.phi_x(xs[t])
            e = F.relu(self.enc(torch.cat([phi, h[-1]], 1), edges[t]))
            mu, std = self.enc_mean(e, edges[t]), F.softplus(self.enc_std(e, edges[t]))
            z = mu + std * torch.randn_like(std)
            h = self.rnn(torch.cat([phi, self.phi_z(z)], 1), edges[t], h)
            kld = kld + 0.5 * (mu.pow(2) + std.pow(2) - 2 * std.log() - 1).sum(1).mean()
            nll = nll + F.binary_cross_entropy_with_logits(z @ z.t(), adj[t])
        return kld / xs.size(0), nll


xs, edges, adj = [t.to(device) if torch.is_tensor(t) else [e.to(device) for e in t]
                  for t in load_dynamic_graph("fb", seq_len)]
model = VGRNN(xs.size(-1), h_dim, z_dim, n_layers).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
h0 = torch.zeros(n_layers, xs.size(1), h_dim, device=device)

model.train()
for k in range(1000):
    optimizer.zero_grad()
    kld_loss, nll_loss = model(xs, edges, adj, h0)
    loss = kld_loss + nll_loss
    loss.backward()
    optimizer.step()

    nn.utils.clip_grad_norm_(model.parameters(), clip)

    if k % 20 == 0:
        print("epoch: ", k, "kld_loss =", kld_loss.mean().item(), "nll_loss =", nll_loss.mean().item())

"""Multi label node classification on PPI, GCN with jumping knowledge. Plain pytorch, no PyG (cluster has old glibc)."""
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConv(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.lin = nn.Linear(din, dout)
        self.skip = nn.Linear(din, dout, bias=False)

    def forward(self, adj, x):
        return torch.sparse.mm(adj, self.lin(x)) + self.skip(x)


class JKNet(nn.Module):
    def __init__(self, din, dhid, dout, depth=4, p=0.2):
        super().__init__()
        self.first = GraphConv(din, dhid)
        self.hidden = []
        for _ in range(depth - 1):
            self.hidden.append(GraphConv(dhid, dhid))
        self.drop = nn.Dropout(p)
        self.classify = nn.Linear(dhid * depth, dout)

    def forward(self, adj, x):
        h = F.elu(self.first(adj, x))
        outs = [h]
        for conv in self.hidden:
            h = F.elu(conv(adj, self.drop(h)))
            outs.append(h)
        return self.classify(torch.cat(outs, dim=-1))


def load_graph(prefix):
    feats = torch.from_numpy(np.load(f"{prefix}_feats.npy")).float()
    labels = torch.from_numpy(np.load(f"{prefix}_labels.npy")).float()
    g = json.load(open(f"{prefix}_graph.json"))
    src = torch.tensor([e["source"] for e in g["links"]])
    dst = torch.tensor([e["target"] for e in g["links"]])
    n = feats.size(0)
    idx = torch.cat([torch.stack([src, dst]), torch.stack([dst, src]), torch.arange(n).repeat(2, 1)], 1)
    deg = torch.bincount(idx[0], minlength=n).float()
    val = 1.0 / deg[idx[0]]
    return torch.sparse_coo_tensor(idx, val, (n, n)).coalesce(), feats, labels


def micro_f1(model, adj, x, y):
    model.eval()
    with torch.no_grad():
        pred = (model(adj, x) > 0).float()
        tp = (pred * y).sum()
        return (2 * tp / (pred.sum() + y.sum())).item()


def main():
    torch.manual_seed(0)
    # full graph fits easily in RAM, we train on the 64 core cpu box
    adj, x, y = load_graph("ppi/train")
    vadj, vx, vy = load_graph("ppi/valid")
    model = JKNet(x.size(1), 256, y.size(1))
    print("trainable params:", sum(p.numel() for p in model.parameters()))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)

    for epoch in range(400):
        model.train()
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(adj, x), y)
        loss.backward()
        opt.step()
        if epoch % 20 == 0:
            print("epoch %3d loss %.4f val-f1 %.4f" % (epoch, loss.item(), micro_f1(model, vadj, vx, vy)))


if __name__ == "__main__":
    main()

"""LightGCN on gowalla - BPR"""
import argparse
import numpy as np
import scipy.sparse as sp
import torch
import torch.nn as nn
import torch.nn.functional as F


def read(path):
    users, items = [], []
    for line in open(path):
        u, *its = map(int, line.split())
        users += [u] * len(its)
        items += its
    return np.array(users), np.array(items)


def normalised(users, items, n_u, n_i):
    r = sp.coo_matrix((np.ones(len(users)), (users, items)), (n_u, n_i))
    a = sp.bmat([[None, r], [r.T, None]]).tocoo()
    d = np.asarray(a.sum(1)).ravel() + 1e-9
    v = a.data / np.sqrt(d[a.row] * d[a.col])
    idx = torch.from_numpy(np.stack([a.row, a.col])).long()
    return torch.sparse_coo_tensor(idx, torch.from_numpy(v).float(), a.shape).coalesce()


class LightGCN(nn.Module):
    def __init__(self, n_u, n_i, dim=64, hops=3):
        super().__init__()
        self.n_u, self.n_i, self.hops = n_u, n_i, hops
        self.emb = nn.Embedding(n_u + n_i, dim)
        nn.init.normal_(self.emb.weight, std=0.1)

    def forward(self, adj):
        x = self.emb.weight
        out = [x]
        for _ in range(self.hops):
            x = torch.sparse.mm(adj, x)
            out.append(x)
        return torch.stack(out).mean(0).split([self.n_u, self.n_i])


@torch.no_grad()
def recall_at_20(model, adj, train, test):
    model.eval()
    ue, ie = model(adj)
    hits = torch.zeros(model.n_u, device=ue.device)
    tot = torch.bincount(test[0], minlength=model.n_u)
    for s in range(0, model.n_u, 2048):
        sc = ue[s:s + 2048] @ ie.t()
        m = (train[0] >= s) & (train[0] < s + 2048)
        sc[train[0][m] - s, train[1][m]] = -1e9
        rel = torch.zeros_like(sc, dtype=torch.bool)
        m = (test[0] >= s) & (test[0] < s + 2048)
        rel[test[0][m] - s, test[1][m]] = True
        hits[s:s + 2048] = rel.gather(1, sc.topk(20).indices).sum(1).float()
    has = tot > 0
    return (hits[has] / tot[has]).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dir", default="gowalla")
    ap.add_argument("--epochs", type=int, default=200)
    ap.add_argument("--bs", type=int, default=8192)
    a = ap.parse_args()
    dev = torch.device("cuda")
    tr, te = read(a.dir + "/train.txt"), read(a.dir + "/test.txt")
    n_u, n_i = max(tr[0].max(), te[0].max()) + 1, max(tr[1].max(), te[1].max()) + 1
    adj = normalised(*tr, n_u, n_i)
    train = tuple(torch.from_numpy(t).to(dev) for t in tr)
    test = tuple(torch.from_numpy(t).to(dev) for t in te)
    model = LightGCN(int(n_u), int(n_i)).to(dev)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    n = len(tr[0])

    for ep in range(a.epochs):
        model.train()
        perm = torch.randperm(n, device=dev)
        for s in range(0, n, a.bs):
            idx = perm[s:s + a.bs]
            u, p = train[0][idx], train[1][idx]
            neg = torch.randint(model.n_i, p.shape, device=dev)
            ue, ie = model(adj.to(dev))
            loss = -F.logsigmoid((ue[u] * (ie[p] - ie[neg])).sum(-1)).mean()
            loss = loss + 1e-4 * (model.emb(u).pow(2).sum() + model.emb(model.n_u + p).pow(2).sum()) / len(u)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if ep % 10 == 0:
            print(ep, "loss", round(loss.item(), 4), "recall@20", recall_at_20(model, adj.to(dev), train, test))


if __name__ == "__main__":
    main()

import argparse
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Replay:
    def __init__(self, path, device):
        d = np.load(path)
        self.n = len(d["a"])
        self.s = torch.from_numpy(d["s"]).float().to(device)
        self.a = torch.from_numpy(d["a"]).long().to(device)
        self.r = torch.from_numpy(d["r"]).float().to(device)
        self.s2 = torch.from_numpy(d["s2"]).float().to(device)
        self.done = torch.from_numpy(d["done"]).float().to(device)

    def sample(self, bs):
        i = torch.randint(self.n, (bs,), device=self.s.device)
        return self.s[i], self.a[i], self.r[i], self.s2[i], self.done[i]


class QNet(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, n))

    def forward(self, x):
        return self.f(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="lander.npz")
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--tau", type=float, default=0.005)
    p.add_argument("--steps", type=int, default=200000)
    args = p.parse_args()
    device = torch.device("cuda")
    buf = Replay(args.data, device)
    q = QNet(buf.s.size(1), 4).to(device)
    target = copy.deepcopy(q)
    opt = torch.optim.Adam(q.parameters(), lr=3e-4)
    for step in range(args.steps):
        s, a, r, s2, done = buf.sample(256)
        with torch.no_grad():
            best = q(s2).argmax(1, keepdim=True)
            y = r + args.gamma * (1 - done) * target(s2).gather(1, best).squeeze(1)
        pred = q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(q.parameters(), 100)
        opt.step()
        with torch.no_grad():
            for tp, qp in zip(target.parameters(), q.parameters()):
                tp.lerp_(qp, args.tau)
        if step % 1000 == 0:
            print(step, "td", loss.item(), "q", pred.mean().item())
    torch.save(q.state_dict(), "q.pt")


if __name__ == "__main__":
    main()

"""PCGrad by hand: several backward-like passes over one graph per step are meant, retain_graph only where needed."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from celeba_attr import CelebAAttr

dev = torch.device("cuda")
TASKS = ("Smiling", "Young", "Male")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        mods, c = [], 3
        for o in (32, 64, 128, 256):
            mods += [nn.Conv2d(c, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU(True)]
            c = o
        self.body = nn.Sequential(*mods, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.heads = nn.ModuleDict({t: nn.Linear(c, 1) for t in TASKS})

    def forward(self, x):
        f = self.body(x)
        return {t: h(f).squeeze(1) for t, h in self.heads.items()}


def pcgrad(losses, shared):
    grads = []
    for i, l in enumerate(losses):
        g = torch.autograd.grad(l, shared, retain_graph=True)
        grads.append(torch.cat([t.flatten() for t in g]))
    out = torch.zeros_like(grads[0])
    for i, g in enumerate(grads):
        g = g.clone()
        others = [o for j, o in enumerate(grads) if j != i]
        random.shuffle(others)
        for o in others:
            dot = torch.dot(g, o)
            g -= dot.clamp(max=0) / o.square().sum().clamp(min=1e-12) * o
        out += g
    return out


def main():
    loader = DataLoader(CelebAAttr("celeba", "train", TASKS), 256, shuffle=True, num_workers=8, pin_memory=True)
    net = Net().to(dev)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    shared = list(net.body.parameters())
    for epoch in range(10):
        net.train()
        hist = []
        for x, y in loader:
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            out = net(x)
            losses = [F.binary_cross_entropy_with_logits(out[t], y[:, i]) for i, t in enumerate(TASKS)]
            flat = pcgrad(losses, shared)
            opt.zero_grad(set_to_none=True)
            sum(losses).backward()
            # the heads keep their own gradients, the body gets the projected ones
            k = 0
            for p in shared:
                p.grad.copy_(flat[k:k + p.numel()].view_as(p))
                k += p.numel()
            opt.step()
            hist.append(torch.stack(losses).detach())
        print(epoch, [round(v, 4) for v in torch.stack(hist).mean(0).tolist()])


if __name__ == "__main__":
    main()

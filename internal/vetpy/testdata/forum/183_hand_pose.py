import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from freihand import FreiHAND
from hourglass import hg4

# experiments must be reproducible (reviewer 2)
# but two runs with the same seed differ in the 3rd digit of PCK


def fix_seeds(seed):
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    g = torch.Generator()
    g.manual_seed(seed)
    return g


def worker_init(_):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


class JointsMSE(nn.Module):
    def forward(self, outs, target, vis):
        w = vis[..., None, None]
        return sum(((o - target) ** 2 * w).mean() for o in outs)


def peaks(hm):
    b, j, h, w = hm.shape
    idx = hm.flatten(2).argmax(-1)
    return torch.stack([idx % w, idx // w], -1).float()


def pck(pred, target, vis, thr=2.0):
    d = (peaks(pred) - peaks(target)).norm(dim=-1)
    return ((d < thr).float() * vis).sum(), vis.sum()


def train(loader, model, crit, optimizer, epoch):
    model.train()
    for i, (img, target, vis) in enumerate(loader):
        img = img.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        vis = vis.cuda(non_blocking=True)
        loss = crit(model(img), target, vis)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"epoch {epoch} [{i}/{len(loader)}] {loss.item():.6f}")


def validate(loader, model):
    model.eval()
    hit = torch.zeros((), device="cuda")
    cnt = torch.zeros((), device="cuda")
    with torch.no_grad():
        for img, target, vis in loader:
            out = model(img.cuda(non_blocking=True))[-1]
            h, c = pck(out, target.cuda(non_blocking=True), vis.cuda(non_blocking=True))
            hit += h
            cnt += c
    return (hit / cnt).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="/data/freihand")
    ap.add_argument("--seed", type=int, default=3407)
    ap.add_argument("--epochs", type=int, default=60)
    args = ap.parse_args()

    gen = fix_seeds(args.seed)
    torch.backends.cudnn.benchmark = True  # fixed input size -> faster

    tr = DataLoader(FreiHAND(args.root, "train"), 32, shuffle=True, num_workers=8, pin_memory=True,
                    worker_init_fn=worker_init, generator=gen)
    va = DataLoader(FreiHAND(args.root, "val"), 32, num_workers=8, pin_memory=True)
    model = hg4(num_joints=21).cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2.5e-4)
    sched = torch.optim.lr_scheduler.MultiStepLR(optimizer, [40, 52], 0.1)
    crit = JointsMSE()
    for epoch in range(args.epochs):
        train(tr, model, crit, optimizer, epoch)
        sched.step()
        print(f"== {epoch} PCK {validate(va, model):.4f}")
        torch.save(model.state_dict(), f"hg_seed{args.seed}.pt")


if __name__ == "__main__":
    main()

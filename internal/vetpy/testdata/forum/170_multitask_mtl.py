"""NYUv2 multi task: segmentation + depth + normals with uncertainty weights (Kendall)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models import resnet34

from nyu import NYUv2


class MTL(nn.Module):
    def __init__(self, n_seg=13):
        super().__init__()
        r = resnet34(weights="DEFAULT")
        self.trunk = nn.Sequential(*list(r.children())[:-2])
        self.neck = nn.Sequential(nn.Conv2d(512, 128, 1), nn.BatchNorm2d(128), nn.ReLU(True))
        self.seg = nn.Conv2d(128, n_seg, 1)
        self.dep = nn.Conv2d(128, 1, 1)
        self.nrm = nn.Conv2d(128, 3, 1)
        self.log_var = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        size = x.shape[-2:]
        f = self.neck(self.trunk(x))
        up = lambda t: F.interpolate(t, size=size, mode="bilinear", align_corners=False)
        return up(self.seg(f)), up(self.dep(f)), F.normalize(up(self.nrm(f)), dim=1)


def losses(out, gt):
    seg, dep, nrm = out
    l_seg = F.cross_entropy(seg, gt["seg"], ignore_index=-1)
    valid = (gt["depth"] > 0).float()
    l_dep = ((dep - gt["depth"]).abs() * valid).sum() / valid.sum().clamp(min=1)
    l_nrm = (1 - (nrm * gt["normal"]).sum(1, keepdim=True)).mul(valid).sum() / valid.sum().clamp(min=1)
    return l_seg, l_dep, l_nrm


def train_epoch(net, loader, opt, dev):
    net.train()
    log = torch.zeros(3, device=dev)
    for img, gt in loader:
        img = img.to(dev, non_blocking=True)
        gt = {k: v.to(dev, non_blocking=True) for k, v in gt.items()}
        opt.zero_grad()
        loss_seg, loss_dep, loss_nrm = losses(net(img), gt)
        w = torch.exp(-net.log_var)
        total = w[0] * loss_seg + w[1] * loss_dep + w[2] * loss_nrm + net.log_var.sum()

        # segmentation first, then everything together
        loss_seg.backward(retain_graph=True)
        total.backward()
        opt.step()
        log += torch.stack([loss_seg, loss_dep, loss_nrm]).detach()
    return (log / len(loader)).tolist()


@torch.no_grad()
def evaluate(net, loader, dev):
    net.eval()
    log = torch.zeros(3, device=dev)
    for img, gt in loader:
        img = img.to(dev, non_blocking=True)
        gt = {k: v.to(dev, non_blocking=True) for k, v in gt.items()}
        log += torch.stack(losses(net(img), gt))
    return (log / len(loader)).tolist()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="nyuv2")
    ap.add_argument("--epochs", type=int, default=100)
    args = ap.parse_args()
    dev = torch.device("cuda")
    tr = DataLoader(NYUv2(args.root, True), 8, shuffle=True, num_workers=6, pin_memory=True, drop_last=True)
    te = DataLoader(NYUv2(args.root, False), 8, num_workers=6, pin_memory=True)
    net = MTL().to(dev)
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    sch = torch.optim.lr_scheduler.StepLR(opt, 50, 0.5)
    for ep in range(args.epochs):
        a = train_epoch(net, tr, opt, dev)
        sch.step()
        b = evaluate(net, te, dev)
        print(f"{ep:03d} train seg {a[0]:.3f} dep {a[1]:.3f} nrm {a[2]:.3f} | test seg {b[0]:.3f} dep {b[1]:.3f} nrm {b[2]:.3f}")

#!/usr/bin/env python
"""Measure FPS of the stereo net for table 4.  We get 190 fps on a 2060?! reviewer does not believe it."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def convbn(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class TinyStereo(nn.Module):
    def __init__(self, maxdisp=192):
        super().__init__()
        self.d = maxdisp // 4
        self.feat = nn.Sequential(convbn(3, 32, 2), convbn(32, 32), convbn(32, 32, 2), convbn(32, 32))
        self.agg = nn.Sequential(
            nn.Conv3d(64, 32, 3, 1, 1), nn.ReLU(True), nn.Conv3d(32, 32, 3, 1, 1), nn.ReLU(True), nn.Conv3d(32, 1, 3, 1, 1))
        self.register_buffer("disp", torch.arange(maxdisp // 4).float().view(1, -1, 1, 1))

    def forward(self, left, right):
        fl, fr = self.feat(left), self.feat(right)
        b, c, h, w = fl.shape
        cost = fl.new_zeros(b, 2 * c, self.d, h, w)
        for i in range(self.d):
            cost[:, :c, i, :, i:] = fl[..., i:]
            cost[:, c:, i, :, i:] = fr[..., : w - i]
        p = F.softmax(self.agg(cost).squeeze(1), dim=1)
        disp = (p * self.disp).sum(1, keepdim=True)
        return 4 * F.interpolate(disp, scale_factor=4, mode="bilinear", align_corners=False)


class FPSMeter:
    def __init__(self, warmup):
        self.warmup, self.times, self.t0 = warmup, [], None

    def tic(self):
        self.t0 = time.perf_counter()

    def toc(self):
        dt = time.perf_counter() - self.t0
        if self.warmup > 0:
            self.warmup -= 1
        else:
            self.times.append(dt)

    def report(self):
        t = np.array(self.times)
        print(f"mean {t.mean() * 1e3:.2f} ms  std {t.std() * 1e3:.2f}  fps {1 / t.mean():.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--height", type=int, default=544)
    parser.add_argument("--width", type=int, default=960)
    parser.add_argument("--iters", type=int, default=200)
    parser.add_argument("--weights", default="")
    opt = parser.parse_args()

    net = TinyStereo().cuda()
    if opt.weights:
        net.load_state_dict(torch.load(opt.weights, map_location="cuda"))
    net.eval()

    left = torch.randn(1, 3, opt.height, opt.width, device="cuda")
    right = torch.randn(1, 3, opt.height, opt.width, device="cuda")
    meter = FPSMeter(warmup=20)
    with torch.no_grad():
        for _ in range(opt.iters):
            meter.tic()
            net(left, right)
            meter.toc()
    meter.report()


if __name__ == "__main__":
    main()

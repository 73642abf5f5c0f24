import argparse
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from bisenet import BiSeNetV2
from city import CityScapes


def train_epoch(net, loader, optim, epoch):
    net.train()
    for it, (im, lb) in enumerate(loader):
        im, lb = im.cuda(non_blocking=True), lb.cuda(non_blocking=True)
        logits, *aux = net(im)
        loss = F.cross_entropy(logits, lb, ignore_index=255)
        for a in aux:
            loss = loss + F.cross_entropy(a, lb, ignore_index=255)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if (it + 1) % 100 == 0:
            print("epoch %d it %d loss %.4f" % (epoch, it + 1, loss.item()))


@torch.inference_mode()
def fps(net, size=(1024, 2048), n=200, warmup=20):
    net.eval()
    x = torch.randn(1, 3, *size, device="cuda")
    for _ in range(warmup):
        net(x)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    for _ in range(n):
        net(x)
    torch.cuda.synchronize()
    return n / (time.perf_counter() - t0)


@torch.inference_mode()
def latency_events(net, x, n=50):
    net.eval()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(n):
        net(x)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=80)
    ap.add_argument("--root", default="/data/cityscapes")
    args = ap.parse_args()
    loader = DataLoader(CityScapes(args.root, "train"), batch_size=16, shuffle=True, drop_last=True,
                        num_workers=8, pin_memory=True)
    net = BiSeNetV2(19).cuda()
    optim = torch.optim.SGD(net.parameters(), lr=5e-2, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.PolynomialLR(optim, total_iters=args.epochs, power=0.9)
    for epoch in range(args.epochs):
        train_epoch(net, loader, optim, epoch)
        sched.step()
    print("fps", fps(net), "ms", latency_events(net, torch.randn(1, 3, 1024, 2048, device="cuda")))


if __name__ == "__main__":
    main()

"""MNIST wholly on the GPU: no loader, no transforms per item; sched and optimizer stepped in one closure helper."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import datasets


def whole(train, dev):
    d = datasets.MNIST("data", train=train, download=True)
    return (d.data.to(dev).float().div_(255).sub_(0.1307).div_(0.3081).unsqueeze(1), d.targets.to(dev))


def batches(x, y, bs, shuffle):
    idx = torch.randperm(len(x), device=x.device) if shuffle else torch.arange(len(x), device=x.device)
    for s in range(0, len(x), bs):
        b = idx[s:s + bs]
        yield x[b], y[b]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.f1, self.f2 = nn.Linear(9216, 128), nn.Linear(128, 10)
        self.drop = nn.Dropout(0.4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c2(F.relu(self.c1(x)))), 2)
        return self.f2(self.drop(F.relu(self.f1(x.flatten(1)))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--bs", type=int, default=512)
    ap.add_argument("--lbfgs-head", action="store_true", help="refit the last layer with LBFGS")
    args = ap.parse_args()
    torch.manual_seed(1)
    dev = torch.device("cuda")
    (xt, yt), (xv, yv) = whole(True, dev), whole(False, dev)
    net = Net().to(dev)
    opt = torch.optim.Adadelta(net.parameters(), lr=1.0)
    sched = torch.optim.lr_scheduler.StepLR(opt, 1, 0.7)

    def accuracy():
        net.eval()
        with torch.no_grad():
            ok = sum((net(x).argmax(1) == y).sum() for x, y in batches(xv, yv, 2000, False))
        net.train()
        return ok.item() / len(xv)

    for epoch in range(args.epochs):
        for x, y in batches(xt, yt, args.bs, True):
            loss = F.cross_entropy(net(x), y)
            for p in net.parameters():
                p.grad = None
            loss.backward()
            opt.step()
        sched.step()
        print(epoch, loss.item(), accuracy())

    if args.lbfgs_head:
        head = torch.optim.LBFGS(net.f2.parameters(), max_iter=20)
        net.eval()

        def closure():
            head.zero_grad()
            loss = F.cross_entropy(net(xt[:10000]), yt[:10000])
            loss.backward()
            return loss

        head.step(closure)
        print("after lbfgs", accuracy())


if __name__ == "__main__":
    main()

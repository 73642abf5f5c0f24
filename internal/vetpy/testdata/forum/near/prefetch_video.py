import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision.models.video import r3d_18

from k400 import Kinetics


class Prefetcher:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device
        self.stream = torch.cuda.Stream()

    def _load(self, it):
        try:
            x, y = next(it)
        except StopIteration:
            return None
        with torch.cuda.stream(self.stream):
            x = x.to(self.device, non_blocking=True).float().div_(255)
            y = y.to(self.device, non_blocking=True)
        return x, y

    def __iter__(self):
        it = iter(self.loader)
        nxt = self._load(it)
        while nxt is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            x, y = nxt
            x.record_stream(torch.cuda.current_stream())
            y.record_stream(torch.cuda.current_stream())
            nxt = self._load(it)
            yield x, y

    def __len__(self):
        return len(self.loader)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="/data/k400")
    p.add_argument("--epochs", type=int, default=45)
    args = p.parse_args()
    device = torch.device("cuda")
    loader = Prefetcher(DataLoader(Kinetics(args.root, "train"), batch_size=24, shuffle=True, num_workers=12,
                                   pin_memory=True, drop_last=True), device)
    net = r3d_18(num_classes=400).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [20, 30, 40], gamma=0.1)
    crit = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        net.train()
        tot = torch.zeros((), device=device)
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            loss = crit(net(x), y)
            loss.backward()
            opt.step()
            tot += loss.detach()
        sched.step()
        print("epoch", epoch, "loss", tot.item() / len(loader))
        torch.save(net.state_dict(), "r3d.pt")


if __name__ == "__main__":
    main()

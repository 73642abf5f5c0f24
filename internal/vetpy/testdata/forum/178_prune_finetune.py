"""
Structured pruning of a small VGG for GTSRB: train -> drop weak channels -> fine-tune.
Finetuning does nothing, accuracy after pruning is exactly the same every epoch.
"""
import argparse
import logging

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

logging.basicConfig(level=logging.INFO, format="%(message)s")
info = logging.info


class SmallVGG(nn.Module):
    def __init__(self, widths=(64, 128, 256), n_cls=43):
        super().__init__()
        self.widths = list(widths)
        mods, c = [], 3
        for w in widths:
            mods += [nn.Conv2d(c, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU(True), nn.MaxPool2d(2)]
            c = w
        self.features = nn.Sequential(*mods)
        self.fc = nn.Linear(c, n_cls)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


def shrink(old, ratio):
    """new, thinner network with the strongest channels copied over"""
    keep, prev = [], torch.arange(3)
    new = SmallVGG([int(w * (1 - ratio)) for w in old.widths], old.fc.out_features)
    for i, w in enumerate(new.widths):
        score = old.features[4 * i + 1].weight.detach().abs()
        keep.append(score.topk(w).indices.sort().values.cpu())
    with torch.no_grad():
        for i, k in enumerate(keep):
            co, cn = old.features[4 * i], new.features[4 * i]
            bo, bn = old.features[4 * i + 1], new.features[4 * i + 1]
            cn.weight.copy_(co.weight.cpu()[k][:, prev])
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(bn, name).copy_(getattr(bo, name).cpu()[k])
            prev = k
        new.fc.weight.copy_(old.fc.weight.cpu()[:, prev])
        new.fc.bias.copy_(old.fc.bias.cpu())
    return new


class Runner:
    def __init__(self, args):
        tf = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
        self.tr = DataLoader(datasets.GTSRB("data", "train", tf, download=True), 128, shuffle=True, num_workers=4, pin_memory=True)
        self.te = DataLoader(datasets.GTSRB("data", "test", tf, download=True), 256, num_workers=4, pin_memory=True)
        self.dev = torch.device("cuda")
        self.model = SmallVGG().to(self.dev)
        self.opt = torch.optim.SGD(self.model.parameters(), args.lr, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def epoch(self):
        self.model.train()
        for x, y in self.tr:
            x, y = x.to(self.dev, non_blocking=True), y.to(self.dev, non_blocking=True)
            self.opt.zero_grad()
            self.loss(self.model(x), y).backward()
            self.opt.step()

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        hit = torch.zeros((), device=self.dev)
        for x, y in self.te:
            x, y = x.to(self.dev, non_blocking=True), y.to(self.dev, non_blocking=True)
            hit += (self.model(x).argmax(1) == y).sum()
        return hit.item() / len(self.te.dataset)

    def prune(self, ratio):
        self.model = shrink(self.model, ratio).to(self.dev)
        info("widths now %s", self.model.widths)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--ratio", type=float, default=0.3)
    ap.add_argument("--epochs", type=int, default=12)
    args = ap.parse_args()
    r = Runner(args)
    for e in range(args.epochs):
        r.epoch()
        info("train %d acc %.4f", e, r.accuracy())
    r.prune(args.ratio)
    for e in range(args.epochs):
        r.epoch()
        info("finetune %d acc %.4f", e, r.accuracy())

"""Keyword spotting on speech commands (12 classes) with a res15 net. Ported from a 2018 code base (pytorch 0.4)."""
import os
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchaudio
from torch.utils.data import DataLoader, Dataset

WORDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]


class Commands(Dataset):
    def __init__(self, root, split):
        self.ds = torchaudio.datasets.SPEECHCOMMANDS(root, subset=split, download=True)
        self.mfcc = torchaudio.transforms.MFCC(16000, n_mfcc=40, melkwargs={"n_fft": 480, "hop_length": 160, "n_mels": 40})

    def __len__(self):
        return len(self.ds)

    def __getitem__(self, i):
        wav, _, word, *_ = self.ds[i]
        wav = F.pad(wav, (0, 16000 - wav.size(1)))
        return self.mfcc(wav), WORDS.index(word) if word in WORDS else len(WORDS)


class Res15(nn.Module):
    def __init__(self, n_maps=45, n_out=11):
        super(Res15, self).__init__()
        self.conv0 = nn.Conv2d(1, n_maps, 3, padding=1, bias=False)
        blocks = OrderedDict()
        for i in range(6):
            d = int(2 ** (i // 2))
            blocks["c%d" % i] = nn.Conv2d(n_maps, n_maps, 3, padding=d, dilation=d, bias=False)
            blocks["b%d" % i] = nn.BatchNorm2d(n_maps, affine=False)
        self.blocks = nn.ModuleDict(blocks)
        self.out = nn.Linear(n_maps, n_out)

    def forward(self, x):
        x = F.relu(self.conv0(x))
        for i in range(0, 6, 2):
            y = F.relu(self.blocks["b%d" % i](self.blocks["c%d" % i](x)))
            y = self.blocks["b%d" % (i + 1)](self.blocks["c%d" % (i + 1)](y))
            x = F.relu(x + y)
        return self.out(x.mean((2, 3)))


def train(model, loader, optimizer):
    model.train()
    for b, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if b % 200 == 0:
            print("   batch %d loss %.3f" % (b, loss.item()))


def test(model, loader):
    model.eval()
    ok = torch.zeros((), device="cuda")
    with torch.no_grad():
        for x, y in loader:
            ok += (model(x.cuda(non_blocking=True)).argmax(1) == y.cuda(non_blocking=True)).sum()
    return ok.item() / len(loader.dataset)


def main():
    root = os.environ.get("DATA", "./data")
    tr = DataLoader(Commands(root, "training"), 64, shuffle=True, num_workers=6, pin_memory=True)
    va = DataLoader(Commands(root, "validation"), 256, num_workers=6, pin_memory=True)
    model = Res15().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-5)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[12, 20], gamma=0.1)

    for epoch in range(26):
        scheduler.step()
        train(model, tr, optimizer)
        print("epoch %d lr %g val %.4f" % (epoch, optimizer.param_groups[0]["lr"], test(model, va)))


if __name__ == "__main__":
    main()

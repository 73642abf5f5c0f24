"""ViT on audio patches: tensors are made in forward, but on the input's device, and the table is cached."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from esc50 import ESC50  # (1, 128, T) log-mels, label


class SinCos(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self._table = None

    def forward(self, x):
        n = x.size(1)
        t = self._table
        if t is None or t.size(0) < n or t.device != x.device:
            pos = torch.arange(n, device=x.device, dtype=torch.float32).unsqueeze(1)
            div = torch.exp(torch.arange(0, self.d, 2, device=x.device) * (-math.log(1e4) / self.d))
            t = self._table = torch.stack([(pos * div).sin(), (pos * div).cos()], -1).flatten(1)
        return x + t[:n].to(x.dtype)


class AudioViT(nn.Module):
    def __init__(self, d=192, n_cls=50, keep=0.8):
        super().__init__()
        self.keep = keep
        self.patch = nn.Conv2d(1, d, 16, 16)
        self.pos = SinCos(d)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        layer = nn.TransformerEncoderLayer(d, 3, 4 * d, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
        self.head = nn.Linear(d, n_cls)

    def forward(self, x):
        x = self.pos(self.patch(x).flatten(2).transpose(1, 2))
        if self.training:
            n = int(x.size(1) * self.keep)
            idx = torch.rand(x.shape[:2], device=x.device).argsort(1)[:, :n, None]
            x = x.gather(1, idx.expand(-1, -1, x.size(-1)))
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1)
        mask = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        return self.head(self.enc(x, src_key_padding_mask=mask)[:, 0])


def main():
    dev = torch.device("cuda")
    tr = DataLoader(ESC50("esc50", folds=(1, 2, 3, 4)), 64, shuffle=True, num_workers=6, pin_memory=True)
    te = DataLoader(ESC50("esc50", folds=(5,)), 64, num_workers=6, pin_memory=True)
    model = AudioViT().to(dev)
    opt = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.05)
    ce = nn.CrossEntropyLoss()
    for epoch in range(100):
        model.train()
        for x, y in tr:
            loss = ce(model(x.to(dev, non_blocking=True)), y.to(dev, non_blocking=True))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        model.eval()
        ok = torch.zeros((), device=dev)
        with torch.no_grad():
            for x, y in te:
                ok += (model(x.to(dev, non_blocking=True)).argmax(1) == y.to(dev, non_blocking=True)).sum()
        print(epoch, loss.item(), ok.item() / len(te.dataset))


if __name__ == "__main__":
    main()

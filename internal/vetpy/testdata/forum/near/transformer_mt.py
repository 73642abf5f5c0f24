import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from mt import PairDataset, pad_collate

PAD = 0


class PosEnc(nn.Module):
    def __init__(self, d, n=1024):
        super().__init__()
        pos = torch.arange(n).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(n, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:x.size(1)]


class MT(nn.Module):
    def __init__(self, vs, vt, d=512):
        super().__init__()
        self.src, self.tgt, self.pos = nn.Embedding(vs, d), nn.Embedding(vt, d), PosEnc(d)
        self.core = nn.Transformer(d, batch_first=True)
        self.out = nn.Linear(d, vt)

    def forward(self, s, t):
        n = t.size(1)
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool, device=t.device), diagonal=1)
        h = self.core(self.pos(self.src(s)), self.pos(self.tgt(t)), tgt_mask=causal, src_key_padding_mask=s == PAD,
                      tgt_key_padding_mask=t == PAD, memory_key_padding_mask=s == PAD)
        return self.out(h)


def noam(step, d=512, warm=4000):
    step = max(step, 1)
    return d ** -0.5 * min(step ** -0.5, step * warm ** -1.5)


def main():
    device = torch.device("cuda")
    train_ds = PairDataset("train.de", "train.en")
    loader = DataLoader(train_ds, batch_size=128, shuffle=True, collate_fn=pad_collate, num_workers=4, pin_memory=True)
    model = MT(train_ds.n_src, train_ds.n_tgt).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, noam)
    crit = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    step = 0
    for epoch in range(20):
        model.train()
        for src, tgt in loader:
            src, tgt = src.to(device, non_blocking=True), tgt.to(device, non_blocking=True)
            logits = model(src, tgt[:, :-1])
            loss = crit(logits.flatten(0, 1), tgt[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} lr {sched.get_last_lr()[0]:.6f}")
        torch.save(model.state_dict(), f"mt_{epoch}.pt")


if __name__ == "__main__":
    main()

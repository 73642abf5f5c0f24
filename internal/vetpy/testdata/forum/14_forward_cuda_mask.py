import math

import torch
import torch.nn as nn


class PositionalEncoding(nn.Module):
    def __init__(self, d, n=5000):
        super().__init__()
        pe = torch.zeros(n, d)
        pos = torch.arange(0, n).float().unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.pe = pe

    def forward(self, x):
        return x + self.pe[:x.size(1)].cuda()


class LM(nn.Module):
    def __init__(self, vocab, d=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = PositionalEncoding(d)
        layer = nn.TransformerEncoderLayer(d, 8, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 6)
        self.out = nn.Linear(d, vocab)

    def forward(self, x):
        mask = torch.triu(torch.ones(x.size(1), x.size(1)), diagonal=1).bool().cuda()
        h = self.pos(self.emb(x))
        return self.out(self.enc(h, mask=mask))


def train(model, batches, steps):
    opt = torch.optim.AdamW(model.parameters(), 3e-4)
    crit = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(batches):
        x, y = x.cuda(), y.cuda()
        logits = model(x)
        loss = crit(logits.view(-1, logits.size(-1)), y.view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == steps:
            break

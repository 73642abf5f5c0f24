import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from copytask import CopyTask

device = torch.device("cuda")


class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=512):
        super().__init__()
        pe = torch.zeros(max_len, d)
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)].to(x.dtype)


class Model(nn.Module):
    def __init__(self, vocab, d=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = PositionalEncoding(d)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 8, 1024, batch_first=True), 4)
        self.out = nn.Linear(d, vocab)

    def forward(self, x):
        n = x.size(1)
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool, device=x.device), 1)
        return self.out(self.enc(self.pos(self.emb(x)), mask=mask))


ds = CopyTask(100000, vocab=64)
dl = DataLoader(ds, 128, shuffle=True, num_workers=2, pin_memory=True)
model = Model(64).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
ce = nn.CrossEntropyLoss()
for epoch in range(10):
    model.train()
    for seq in dl:
        seq = seq.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(seq[:, :-1])
            loss = ce(logits.flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    print(epoch, loss.item())

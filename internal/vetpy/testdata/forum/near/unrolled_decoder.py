import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from captions import CaptionSet, collate, vocab_size
from encoders import ResNetFeatures

device = torch.device("cuda")


class Decoder(nn.Module):
    def __init__(self, v, d=512):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(v, d), nn.LSTMCell(d, d), nn.Linear(d, v)

    def forward(self, tok, state):
        state = self.cell(self.emb(tok), state)
        return self.out(state[0]), state


enc, dec = ResNetFeatures(512).to(device), Decoder(vocab_size).to(device)
params = list(enc.parameters()) + list(dec.parameters())
opt = torch.optim.Adam(params, lr=4e-4)
dl = DataLoader(CaptionSet("train"), 64, shuffle=True, num_workers=8, collate_fn=collate, pin_memory=True)

for epoch in range(10):
    enc.train()
    dec.train()
    epoch_loss = torch.zeros((), device=device)
    for img, cap in dl:
        img, cap = img.to(device, non_blocking=True), cap.to(device, non_blocking=True)
        h = enc(img)
        state = (h, torch.zeros_like(h))
        loss = 0
        for t in range(cap.size(1) - 1):
            logits, state = dec(cap[:, t], state)
            loss += F.cross_entropy(logits, cap[:, t + 1], ignore_index=0)
        loss = loss / (cap.size(1) - 1)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 5.0)
        opt.step()
        epoch_loss += loss.detach()
    print(epoch, epoch_loss.item() / len(dl))

import random

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from multi30k import get_dataset, pad_collate

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder(nn.Module):
    def __init__(self, vocab, emb=256, hid=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=1)
        self.rnn = nn.GRU(emb, hid, batch_first=True)

    def forward(self, src):
        return self.rnn(self.emb(src))[1]


class Decoder(nn.Module):
    def __init__(self, vocab, emb=256, hid=512):
        super().__init__()
        self.vocab = vocab
        self.emb = nn.Embedding(vocab, emb, padding_idx=1)
        self.rnn = nn.GRU(emb, hid, batch_first=True)
        self.out = nn.Linear(hid, vocab)

    def forward(self, tok, h):
        o, h = self.rnn(self.emb(tok), h)
        return self.out(o), h


def step(enc, dec, src, trg, crit, tf=0.5):
    h = enc(src)
    tok = trg[:, :1]
    outs = []
    for t in range(1, trg.size(1)):
        logit, h = dec(tok, h)
        outs.append(logit)
        tok = trg[:, t:t + 1] if random.random() < tf else logit.argmax(-1)
    logits = torch.cat(outs, 1)
    return crit(logits.reshape(-1, dec.vocab), trg[:, 1:].reshape(-1))


def main(n_epochs=20, clip=1.0):
    train_ds, src_vocab, trg_vocab = get_dataset("train")
    loader = DataLoader(train_ds, 128, shuffle=True, collate_fn=pad_collate, num_workers=4, pin_memory=True)
    enc, dec = Encoder(len(src_vocab)).to(device), Decoder(len(trg_vocab)).to(device)
    opt_e = torch.optim.Adam(enc.parameters(), lr=1e-3)
    opt_d = torch.optim.Adam(dec.parameters(), lr=1e-3)
    crit = nn.CrossEntropyLoss(ignore_index=1)
    for epoch in range(n_epochs):
        enc.train()
        dec.train()
        for src, trg in loader:
            src, trg = src.to(device, non_blocking=True), trg.to(device, non_blocking=True)
            opt_e.zero_grad()
            opt_d.zero_grad()
            loss = step(enc, dec, src, trg, crit)
            loss.backward()
            opt_e.step()
            opt_d.step()
            clip_grad_norm_(enc.parameters(), clip)
            clip_grad_norm_(dec.parameters(), clip)
        print(f"{epoch:02d} {loss.item():.3f}")


if __name__ == "__main__":
    main()

"""
En-De translation, GRU encoder/decoder with dot attention.
GPU mem explodes in validate(), training is ok.
"""
import logging
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from multi30k import Multi30k, collate_pad, PAD, BOS

logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
log = logging.getLogger("nmt")

DEVICE = torch.device("cuda:0")
EMB, HID = 256, 512


class Encoder(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.emb = nn.Embedding(vocab, EMB, padding_idx=PAD)
        self.rnn = nn.GRU(EMB, HID, batch_first=True)
        self.drop = nn.Dropout(0.5)

    def forward(self, src):
        return self.rnn(self.drop(self.emb(src)))


class Decoder(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.emb = nn.Embedding(vocab, EMB, padding_idx=PAD)
        self.cell = nn.GRUCell(EMB + HID, HID)
        self.out = nn.Linear(2 * HID, vocab)
        self.drop = nn.Dropout(0.5)

    def forward(self, tok, h, memory, mask):
        att = torch.bmm(memory, h.unsqueeze(2)).squeeze(2).masked_fill(mask, float("-inf"))
        ctx = torch.bmm(att.softmax(1).unsqueeze(1), memory).squeeze(1)
        h = self.cell(torch.cat([self.drop(self.emb(tok)), ctx], 1), h)
        return self.out(torch.cat([h, ctx], 1)), h


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab, tgt_vocab):
        super().__init__()
        self.encoder = Encoder(src_vocab)
        self.decoder = Decoder(tgt_vocab)

    def forward(self, src, tgt, teacher_forcing=1.0):
        memory, h = self.encoder(src)
        h, mask = h.squeeze(0), src == PAD
        tok, outs = tgt[:, 0], []
        for t in range(1, tgt.size(1)):
            logits, h = self.decoder(tok, h, memory, mask)
            outs.append(logits)
            tok = tgt[:, t] if random.random() < teacher_forcing else logits.argmax(1)
        return torch.stack(outs, 1)


def train(model, loader, optimizer):
    model.train()
    total = torch.zeros((), device=DEVICE)
    for src, tgt in loader:
        src, tgt = src.to(DEVICE, non_blocking=True), tgt.to(DEVICE, non_blocking=True)
        logits = model(src, tgt, teacher_forcing=0.7)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


def validate(model, loader):
    model.eval()
    all_logits, all_tgt = [], []
    for src, tgt in loader:
        src, tgt = src.to(DEVICE, non_blocking=True), tgt.to(DEVICE, non_blocking=True)
        logits = model(src, tgt, teacher_forcing=0.0)
        all_logits.append(logits.flatten(0, 1))
        all_tgt.append(tgt[:, 1:].flatten())
    logits, tgt = torch.cat(all_logits), torch.cat(all_tgt)
    loss = F.cross_entropy(logits, tgt, ignore_index=PAD)
    keep = tgt != PAD
    acc = (logits.argmax(1)[keep] == tgt[keep]).float().mean()
    return loss.item(), acc.item()


if __name__ == "__main__":
    train_set, val_set = Multi30k("train"), Multi30k("val")
    kw = dict(batch_size=64, collate_fn=collate_pad, num_workers=2, pin_memory=True)
    train_loader = DataLoader(train_set, shuffle=True, **kw)
    val_loader = DataLoader(val_set, **kw)
    model = Seq2Seq(len(train_set.src_vocab), len(train_set.tgt_vocab)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    for epoch in range(1, 21):
        tr = train(model, train_loader, optimizer)
        va, acc = validate(model, val_loader)
        log.info("epoch %d train %.3f val %.3f acc %.3f", epoch, tr, va, acc)
        torch.save(model.state_dict(), "seq2seq.pt")

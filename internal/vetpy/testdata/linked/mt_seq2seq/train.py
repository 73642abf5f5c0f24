"""
EN->DE transformer, multi30k.  GPU mem creeps up ~30MB / it until OOM in the first epoch.
"""
import math
import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from corpus import BOS, EOS, PAD, ParallelCorpus, collate_pairs
from meters import AverageMeter, ProgressMeter


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d=256, max_len=256):
        super().__init__()
        self.src = nn.Embedding(src_vocab, d, padding_idx=PAD)
        self.tgt = nn.Embedding(tgt_vocab, d, padding_idx=PAD)
        pos = torch.arange(max_len).unsqueeze(1) * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        self.register_buffer("pe", torch.stack([pos.sin(), pos.cos()], -1).flatten(1))
        self.core = nn.Transformer(d, 8, 3, 3, 512, dropout=0.1, batch_first=True)
        self.out = nn.Linear(d, tgt_vocab)

    def forward(self, src, tgt):
        s = self.src(src) + self.pe[: src.size(1)]
        t = self.tgt(tgt) + self.pe[: tgt.size(1)]
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device), 1)
        h = self.core(s, t, tgt_mask=causal, src_key_padding_mask=src.eq(PAD), tgt_key_padding_mask=tgt.eq(PAD))
        return self.out(h)


def train(loader, model, criterion, optimizer, epoch):
    losses = AverageMeter("loss", ":.4f")
    ntok = AverageMeter("tok/b", ":.0f")
    progress = ProgressMeter(len(loader), [losses, ntok], prefix=f"Epoch [{epoch}]")
    model.train()
    for i, (src, tgt) in enumerate(loader):
        ntok.update(src.numel() + tgt.numel())
        src = src.cuda(non_blocking=True)
        tgt = tgt.cuda(non_blocking=True)
        logits = model(src, tgt[:, :-1])
        loss = criterion(logits.flatten(0, 1), tgt[:, 1:].flatten())
        losses.update(loss, src.size(0))

        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i % 50 == 0:
            progress.display(i)


def main():
    corpus = ParallelCorpus(sys.argv[1])
    loader = DataLoader(corpus, batch_size=128, shuffle=True, collate_fn=collate_pairs, num_workers=4, pin_memory=True)
    model = Seq2Seq(len(corpus.src_vocab), len(corpus.tgt_vocab)).cuda()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98))
    for epoch in range(30):
        train(loader, model, criterion, optimizer, epoch)
        torch.save(model.state_dict(), "mt.pt")


if __name__ == "__main__":
    main()

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class Config:
    block_size: int = 256
    vocab_size: int = 50304
    n_layer: int = 6
    n_head: int = 6
    n_embd: int = 384
    max_iters: int = 5000
    warmup: int = 100
    lr: float = 6e-4
    batch: int = 64


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.attn = nn.MultiheadAttention(c.n_embd, c.n_head, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd))
        self.register_buffer("mask", torch.triu(torch.ones(c.block_size, c.block_size, dtype=torch.bool), 1))

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=self.mask, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok, self.pos = nn.Embedding(c.vocab_size, c.n_embd), nn.Embedding(c.block_size, c.n_embd)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.n_layer)])
        self.head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.register_buffer("ids", torch.arange(c.block_size))

    def forward(self, idx):
        return self.head(self.blocks(self.tok(idx) + self.pos(self.ids)))


def get_lr(it, c):
    if it < c.warmup:
        return c.lr * (it + 1) / c.warmup
    return 0.1 * c.lr + 0.45 * c.lr * (1 + math.cos(math.pi * it / c.max_iters))


def main():
    c = Config()
    device = "cuda"
    data = torch.load("data/tokens.pt").to(device)
    model = GPT(c).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=(0.9, 0.95), weight_decay=0.1)
    offs = torch.arange(c.block_size, device=device)
    for it in range(c.max_iters):
        start = torch.randint(len(data) - c.block_size - 1, (c.batch, 1), device=device)
        x, y = data[start + offs], data[start + offs + 1]
        for g in optimizer.param_groups:
            g["lr"] = get_lr(it, c)
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("iter", it, "loss", loss)
    torch.save(model.state_dict(), "ckpt.pt")


if __name__ == "__main__":
    main()

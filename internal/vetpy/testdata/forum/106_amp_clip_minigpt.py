import math
import os
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(B, T, self.h, C // self.h).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, d=384, n=6, h=6, block=256):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(1, block, d))
        self.blocks = nn.Sequential(*[Block(d, h) for _ in range(n)])
        self.head = nn.Linear(d, vocab)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos[:, : idx.size(1)]
        logits = self.head(self.blocks(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def get_lr(it, max_lr=6e-4, warm=200, total=5000):
    if it < warm:
        return max_lr * it / warm
    return 0.1 * max_lr + 0.45 * max_lr * (1 + math.cos(math.pi * (it - warm) / (total - warm)))


device = "cuda"
data = torch.load(os.path.join("data", "tokens.pt")).to(device)
model = GPT(65).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
scaler = torch.cuda.amp.GradScaler()
grad_clip = 1.0
for it in range(5000):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    ix = torch.randint(len(data) - 257, (64,), device=device)
    rows = ix[:, None] + torch.arange(257, device=device)
    chunk = data[rows]
    x, y = chunk[:, :-1].contiguous(), chunk[:, 1:].contiguous()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(x, y)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    if it % 100 == 0:
        print(it, loss.item())

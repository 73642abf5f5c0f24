"""PyTorch's profiler in the same work, for main.go: "op on|off" and "step on|off|full" in, seconds per op or step out.

on is torch.profiler with its defaults on the CPU; full also records shapes, stacks and modules, as ours always does."""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

VOCAB, CONTEXT, LAYERS, HEADS, WIDTH, BATCH = map(int, sys.argv[1:7])
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.ln = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.blocks(self.wte(ids) + self.wpe(torch.arange(CONTEXT)))
        return F.linear(self.ln(x), self.wte.weight)


model = GPT()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
ids = torch.zeros(BATCH, CONTEXT, dtype=torch.long)
small = torch.ones(4)


def op():
    for _ in range(1000):
        torch.add(small, small)


def step():
    opt.zero_grad()
    F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    opt.step()


def timed(f, count, per):
    f()
    begun = time.process_time()
    for _ in range(count):
        f()
    return (time.process_time() - begun) / count / per


def answer(what, how):
    f, count, per = (op, 100, 1000) if what == "op" else (step, 5, 1)
    if how == "off":
        return timed(f, count, per)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=how == "full", with_stack=how == "full", with_modules=how == "full"):
        return timed(f, count, per)


for line in sys.stdin:
    print(answer(*line.split()), flush=True)

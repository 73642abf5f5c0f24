"""Measures training steps of PyTorch for main.go: "job threads turns" in, seconds per step out."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocab, context, layers, heads, width):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        return F.linear(self.ln(self.blocks(x)), self.wte.weight).flatten(0, 1)


def make(job):
    torch.manual_seed(0)
    if job == "gpt":
        tokens = torch.randint(65, (16, 128))
        return GPT(65, 128, 4, 4, 128), tokens, tokens.flatten()
    if job == "resnet18":
        import torchvision
        return torchvision.models.resnet18(num_classes=10), torch.rand(8, 3, 64, 64), torch.randint(10, (8,))
    x, y = torch.rand(128, 1, 28, 28), torch.randint(10, (128,))
    if job == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), x, y
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10)), x, y


cache = {}


def step(job):
    if job not in cache:
        model, x, y = make(job)
        cache[job] = model, x, y, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    model, x, y, opt = cache[job]
    opt.zero_grad(set_to_none=True)
    F.cross_entropy(model(x), y).backward()
    opt.step()


for line in sys.stdin:
    job, threads, turns = line.split()
    if torch.get_num_threads() != int(threads):
        torch.set_num_threads(int(threads))
    step(job)
    start = time.perf_counter()
    for _ in range(int(turns)):
        step(job)
    print((time.perf_counter() - start) / int(turns), flush=True)

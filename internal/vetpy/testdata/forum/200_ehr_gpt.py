import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, n_head, dropout):
        super().__init__()
        self.n_head = n_head
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(dropout))
        self.drop = nn.Dropout(dropout)
        self.p = dropout

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (z.view(b, t, self.n_head, -1).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           dropout_p=self.p if self.training else 0.0)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(b, t, d)))
        return x + self.mlp(self.ln2(x))


class EhrGPT(nn.Module):
    def __init__(self, vocab, block, d=384, n_layer=6, n_head=6, dropout=0.3):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(block, d)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(d, n_head, dropout) for _ in range(n_layer)])
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, idx, targets):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.drop(self.tok(idx) + self.pos(pos))
        for blk in self.blocks:
            x = blk(x)
        logits = self.head(self.ln(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(data, block, bs, device):
    ix = np.random.randint(0, len(data) - block - 1, size=bs)
    x = torch.from_numpy(np.stack([data[i:i + block] for i in ix]).astype(np.int64))
    y = torch.from_numpy(np.stack([data[i + 1:i + 1 + block] for i in ix]).astype(np.int64))
    return (x.pin_memory().to(device, non_blocking=True),
            y.pin_memory().to(device, non_blocking=True))


@torch.inference_mode()
def estimate_loss(model, data, args, device):
    losses = torch.zeros(args.eval_iters, device=device)
    for k in range(args.eval_iters):
        x, y = get_batch(data, args.block, args.bs, device)
        _, losses[k] = model(x, y)
    return losses.mean().item()


def lr_at(step, args):
    if step < args.warmup:
        return args.lr * step / args.warmup
    frac = (step - args.warmup) / (args.max_iters - args.warmup)
    return 0.1 * args.lr + 0.45 * args.lr * (1 + math.cos(math.pi * frac))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--block", type=int, default=512)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--lr", type=float, default=6e-4)
    ap.add_argument("--warmup", type=int, default=1000)
    ap.add_argument("--max_iters", type=int, default=50000)
    ap.add_argument("--eval_iters", type=int, default=100)
    args = ap.parse_args()
    device = torch.device("cuda")

    train_data = np.memmap("train.bin", dtype=np.uint16, mode="r")
    val_data = np.memmap("val.bin", dtype=np.uint16, mode="r")
    model = EhrGPT(vocab=4096, block=args.block).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)

    for step in range(args.max_iters):
        for g in opt.param_groups:
            g["lr"] = lr_at(step, args)
        x, y = get_batch(train_data, args.block, args.bs, device)
        _, loss = model(x, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 1000 == 0:
            print(f"step {step}: val loss {estimate_loss(model, val_data, args, device):.4f}")
    torch.save(model.state_dict(), "ehr_gpt.pt")


if __name__ == "__main__":
    main()

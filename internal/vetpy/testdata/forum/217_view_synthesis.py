"""Train a small view-synthesis transformer on RealEstate10k."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from re10k import Re10kViews


class ViewTransformer(nn.Module):
    def __init__(self, patch=8, dim=768, depth=12, heads=12):
        super().__init__()
        self.patch = patch
        self.embed_in = nn.Linear((3 + 6) * patch * patch, dim)
        self.embed_tgt = nn.Linear(6 * patch * patch, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth)
        self.out = nn.Linear(dim, 3 * patch * patch)

    def tokens(self, x):
        return F.unfold(x, self.patch, stride=self.patch).transpose(1, 2)

    def forward(self, src_img, src_ray, tgt_ray):
        b, v = src_img.shape[:2]
        src = self.tokens(torch.cat([src_img, src_ray], dim=2).flatten(0, 1))
        src = self.embed_in(src).reshape(b, -1, self.embed_in.out_features)
        tgt = self.embed_tgt(self.tokens(tgt_ray))
        y = self.blocks(torch.cat([src, tgt], dim=1))[:, -tgt.size(1):]
        y = torch.sigmoid(self.out(y)).transpose(1, 2)
        return F.fold(y, tgt_ray.shape[-2:], self.patch, stride=self.patch)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="data/re10k")
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--max-norm", type=float, default=1.0)
    ap.add_argument("--ckpt", default="ckpt")
    args = ap.parse_args()
    os.makedirs(args.ckpt, exist_ok=True)

    device = torch.device("cuda")
    loader = DataLoader(Re10kViews(args.root, n_src=2), batch_size=8, shuffle=True, num_workers=8,
                        pin_memory=True, drop_last=True, persistent_workers=True)
    model = ViewTransformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.95), weight_decay=0.05)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=2500)
    scaler = torch.amp.GradScaler("cuda")

    model.train()
    step = 0
    while step < args.steps:
        for batch in loader:
            src_img, src_ray, tgt_ray, tgt = (t.to(device, non_blocking=True) for t in batch)
            with torch.autocast("cuda", dtype=torch.float16):
                pred = model(src_img, src_ray, tgt_ray)
                loss = F.mse_loss(pred.float(), tgt)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
            scaler.update()
            scaler.step(optimizer)
            warm.step()
            step += 1
            if step % 200 == 0:
                print(f"step {step} loss {loss.item():.5f}")
            if step % 10000 == 0:
                torch.save(model.state_dict(), os.path.join(args.ckpt, f"step{step}.pt"))
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()

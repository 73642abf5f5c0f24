"""Masked auto-encoder for multispectral patches."""
import math
import os
from typing import Tuple

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from s2patches import Sentinel2Patches


class MAE(nn.Module):
    def __init__(self, n_patch: int = 196, dim_in: int = 16 * 16 * 12, dim: int = 384, mask: float = 0.75):
        super().__init__()
        self.mask = mask
        self.embed = nn.Linear(dim_in, dim)
        self.pos = nn.Parameter(torch.zeros(1, n_patch, dim))
        enc = nn.TransformerEncoderLayer(dim, 6, 4 * dim, batch_first=True, norm_first=True, dropout=0.0)
        dec = nn.TransformerEncoderLayer(dim, 6, 2 * dim, batch_first=True, norm_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(enc, 12, enable_nested_tensor=False)
        self.decoder = nn.TransformerEncoder(dec, 4, enable_nested_tensor=False)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.head = nn.Linear(dim, dim_in)

    def forward(self, patches: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        b, n, _ = patches.shape
        keep = int(n * (1 - self.mask))
        order = torch.rand(b, n, device=patches.device).argsort(1)
        restore = order.argsort(1)
        x = self.embed(patches) + self.pos
        vis = torch.gather(x, 1, order[:, :keep, None].expand(-1, -1, x.size(-1)))
        lat = self.encoder(vis)
        full = torch.cat([lat, self.mask_token.to(lat.dtype).expand(b, n - keep, -1)], 1)
        full = torch.gather(full, 1, restore[..., None].expand(-1, -1, full.size(-1))) + self.pos
        return self.head(self.decoder(full)), restore >= keep


class PretrainTrainer:
    def __init__(self, model, loader, epochs=200, lr=1.5e-4, warmup=10, out="ckpt"):
        self.device = torch.device("cuda")
        self.model = model.to(self.device)
        self.loader, self.epochs, self.out = loader, epochs, out
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.05)
        total, w = epochs * len(loader), warmup * len(loader)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: (s + 1) / w if s < w else 0.5 * (1 + math.cos(math.pi * (s - w) / (total - w))))
        self.scaler = torch.amp.GradScaler("cuda")
        os.makedirs(out, exist_ok=True)

    def _forward(self, patches):
        with torch.autocast("cuda", dtype=torch.float16):
            pred, masked = self.model(patches)
            err = (pred.float() - patches).pow(2).mean(-1)
            return (err * masked).sum() / masked.sum()

    def _backward(self, loss):
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 3.0)
        self.scaler.update()
        self.scaler.step(self.optimizer)
        self.schedule.step()

    def run(self):
        for epoch in range(self.epochs):
            self.model.train()
            acc = torch.zeros((), device=self.device)
            for patches in self.loader:
                patches = patches.to(self.device, non_blocking=True)
                loss = self._forward(patches)
                self._backward(loss)
                acc += loss.detach()
            print(f"[{epoch:03d}] {acc.item() / len(self.loader):.5f}")
            torch.save(self.model.state_dict(), os.path.join(self.out, "mae.pt"))


if __name__ == "__main__":
    torch.manual_seed(7)
    dl = DataLoader(Sentinel2Patches("/data/s2"), batch_size=256, shuffle=True, drop_last=True,
                    num_workers=10, pin_memory=True, persistent_workers=True)
    PretrainTrainer(MAE(), dl).run()

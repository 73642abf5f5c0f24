"""AMP hidden in a helper class (timm / MAE style): backward, unscale, clip, step, update in order."""
import argparse
import contextlib

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from mae import MaskedAutoencoder
from imagefolder import fast_imagenet


class NativeScaler:
    def __init__(self, enabled=True):
        self._scaler = torch.amp.GradScaler("cuda", enabled=enabled)

    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, update_grad=True):
        self._scaler.scale(loss).backward()
        if not update_grad:
            return None
        self._scaler.unscale_(optimizer)
        norm = None
        if clip_grad is not None:
            norm = nn.utils.clip_grad_norm_(parameters, clip_grad)
        self._scaler.step(optimizer)
        self._scaler.update()
        return norm

    def state_dict(self):
        return self._scaler.state_dict()


def train_one_epoch(model, loader, optimizer, scaler, device, epoch, args):
    model.train()
    optimizer.zero_grad()
    amp = torch.autocast("cuda", dtype=torch.float16) if args.amp else contextlib.nullcontext()
    for it, (samples, _) in enumerate(loader):
        samples = samples.to(device, non_blocking=True)
        with amp:
            loss, _, _ = model(samples, mask_ratio=0.75)
        update = (it + 1) % args.accum_iter == 0
        scaler(loss / args.accum_iter, optimizer, clip_grad=1.0, parameters=model.parameters(),
               update_grad=update)
        if update:
            optimizer.zero_grad()
        if it % 50 == 0:
            print(f"epoch {epoch} [{it}/{len(loader)}] loss {loss.item():.4f}")


def main():
    ap = argparse.ArgumentParser("MAE pre-training")
    ap.add_argument("--data", required=True)
    ap.add_argument("--epochs", type=int, default=400)
    ap.add_argument("--accum_iter", type=int, default=4)
    ap.add_argument("--no-amp", dest="amp", action="store_false")
    args = ap.parse_args()
    device = torch.device("cuda")
    loader = DataLoader(fast_imagenet(args.data), batch_size=64, shuffle=True, num_workers=10,
                        pin_memory=True, drop_last=True)
    model = MaskedAutoencoder("vit_large").to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    scaler = NativeScaler(args.amp)
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, scaler, device, epoch, args)
        scheduler.step()
        torch.save({"model": model.state_dict(), "scaler": scaler.state_dict()}, "mae_last.pth")


if __name__ == "__main__":
    main()

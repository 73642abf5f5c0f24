"""Segmentation with a hand-made prefetcher: pin_memory() and a side stream, really non-blocking."""
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

from bdd import BDDSeg

dev = torch.device("cuda")


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def _upload(self, batch):
        with torch.cuda.stream(self.stream):
            return [t.pin_memory().to(dev, non_blocking=True) for t in batch]

    def __iter__(self):
        ahead = None
        for batch in self.loader:
            nxt = self._upload(batch)
            if ahead is not None:
                yield ahead
            torch.cuda.current_stream().wait_stream(self.stream)
            for t in nxt:
                t.record_stream(torch.cuda.current_stream())
            ahead = nxt
        if ahead is not None:
            yield ahead


def confusion(pred, ref, n=19):
    k = torch.where(ref < n, ref * n + pred, n * n).flatten()
    return torch.bincount(k, minlength=n * n + 1)[:-1].view(n, n)


@torch.inference_mode()
def miou(model, loader):
    model.eval()
    cm = torch.zeros(19, 19, dtype=torch.long, device=dev)
    for img, ref in Prefetcher(loader):
        cm += confusion(model(img)["out"].argmax(1), ref)
    cm = cm.cpu().double()  # once, after the loop
    inter = cm.diag()
    return (inter / (cm.sum(0) + cm.sum(1) - inter).clamp(min=1)).mean().item()


def main():
    tr = DataLoader(BDDSeg("bdd", "train"), 16, shuffle=True, num_workers=10, drop_last=True, persistent_workers=True)
    va = DataLoader(BDDSeg("bdd", "val"), 16, num_workers=10)
    model = lraspp_mobilenet_v3_large(num_classes=19).to(dev)
    opt = torch.optim.AdamW(model.parameters(), 5e-4)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, 60 * len(tr), power=0.9)
    for epoch in range(60):
        model.train()
        log = []
        for img, ref in Prefetcher(tr):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(img)["out"], ref, ignore_index=255)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            log.append(loss.detach())
        print(epoch, torch.stack(log).mean().item(), "miou", miou(model, va))
        os.makedirs("ckpt", exist_ok=True)
        torch.save(model.state_dict(), "ckpt/last.pt")


if __name__ == "__main__":
    main()

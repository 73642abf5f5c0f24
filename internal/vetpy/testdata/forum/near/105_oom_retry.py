"""Find the largest batch that fits, then train. empty_cache() is used after an OOM and between the
phases, never in the loop."""
import argparse
import gc

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models.segmentation import deeplabv3_resnet50

from cityscapes import Cityscapes


def try_batch(model, size, bs, device):
    x = torch.randn(bs, 3, size, size, device=device)
    y = torch.randint(0, 19, (bs, size, size), device=device)
    loss = F.cross_entropy(model(x)["out"], y)
    loss.backward()
    model.zero_grad(set_to_none=True)


def find_batch_size(model, size, device, start=64):
    bs = start
    model.train()
    while bs > 1:
        try:
            try_batch(model, size, bs, device)
            return bs
        except torch.cuda.OutOfMemoryError:
            model.zero_grad(set_to_none=True)
            gc.collect()
            torch.cuda.empty_cache()
            bs //= 2
    raise SystemExit("does not fit at all")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="/data/cityscapes")
    ap.add_argument("--size", type=int, default=512)
    ap.add_argument("--epochs", type=int, default=80)
    args = ap.parse_args()
    device = torch.device("cuda")
    model = deeplabv3_resnet50(num_classes=19).to(device)
    bs = find_batch_size(model, args.size, device)
    torch.cuda.empty_cache()
    print("batch size", bs)

    loader = DataLoader(Cityscapes(args.root, "train", args.size), batch_size=bs, shuffle=True,
                        num_workers=8, pin_memory=True, drop_last=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.01 * bs / 8, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, args.epochs, power=0.9)
    for epoch in range(args.epochs):
        model.train()
        total = torch.zeros((), device=device)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = F.cross_entropy(model(x)["out"], y, ignore_index=255)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        sched.step()
        print(f"epoch {epoch} loss {total.item() / len(loader):.4f} "
              f"peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
        torch.save(model.state_dict(), "deeplab.pth")


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from shapes import ShapeDataset, build_model


def run_epoch(model, loader, opt, device):
    model.train()
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        opt.step()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    stat = torch.zeros(2, device=device)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        stat[0] += (model(x).argmax(1) == y).sum()
        stat[1] += y.numel()
    dist.all_reduce(stat)
    return (stat[0] / stat[1]).item()


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    train_ds, val_ds = ShapeDataset("train"), ShapeDataset("val")
    train_dl = DataLoader(train_ds, 64, sampler=DistributedSampler(train_ds), num_workers=4, pin_memory=True)
    val_dl = DataLoader(val_ds, 64, sampler=DistributedSampler(val_ds, shuffle=False), num_workers=4, pin_memory=True)
    model = DDP(build_model().to(device), device_ids=[rank])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(30):
        train_dl.sampler.set_epoch(epoch)
        run_epoch(model, train_dl, opt, device)
        acc = validate(model, val_dl, device)
        if dist.get_rank() == 0:
            print(epoch, acc)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

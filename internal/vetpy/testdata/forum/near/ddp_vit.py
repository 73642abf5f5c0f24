import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms
from torchvision.models import vit_b_16


def get_loader(root, train, bs):
    aug = [transforms.RandomResizedCrop(224), transforms.RandAugment()] if train else \
        [transforms.Resize(256), transforms.CenterCrop(224)]
    tf = transforms.Compose(aug + [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
    ds = datasets.ImageFolder(os.path.join(root, "train" if train else "val"), tf)
    sampler = DistributedSampler(ds, shuffle=train, drop_last=train)
    return DataLoader(ds, batch_size=bs, sampler=sampler, num_workers=8, pin_memory=True), sampler


@torch.no_grad()
def evaluate(model, loader, device):
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
    loader, sampler = get_loader("/data/in1k", True, 128)
    val_loader, _ = get_loader("/data/in1k", False, 256)
    model = DDP(vit_b_16(num_classes=1000).to(device), device_ids=[rank])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=90)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        model.train()
        for i, (x, y) in enumerate(loader):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss_fn(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            if i % 200 == 0 and rank == 0:
                print(f"e{epoch} i{i} loss {loss.item():.3f}")
        sched.step()
        acc = evaluate(model, val_loader, device)
        if rank == 0:
            print("val", acc)
            torch.save(model.module.state_dict(), "vit.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

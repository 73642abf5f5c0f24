import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision.models as models
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

# launch: torchrun --nproc_per_node=8 05_ddp_imagenet.py /data/imagenet


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("data")
    p.add_argument("--arch", default="resnet50")
    p.add_argument("--epochs", default=90, type=int)
    p.add_argument("-b", "--batch-size", default=128, type=int, help="per gpu")
    p.add_argument("--lr", default=0.1, type=float)
    p.add_argument("-j", "--workers", default=8, type=int)
    return p.parse_args()


def loaders(args):
    norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train_ds = datasets.ImageFolder(os.path.join(args.data, "train"), transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), norm]))
    val_ds = datasets.ImageFolder(os.path.join(args.data, "val"), transforms.Compose([
        transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), norm]))
    train_sampler = DistributedSampler(train_ds, shuffle=True)
    val_sampler = DistributedSampler(val_ds, shuffle=False, drop_last=True)
    train_loader = DataLoader(train_ds, batch_size=args.batch_size, sampler=train_sampler,
                              num_workers=args.workers, persistent_workers=True)
    val_loader = DataLoader(val_ds, batch_size=args.batch_size, sampler=val_sampler,
                            num_workers=args.workers, pin_memory=True)
    return train_loader, val_loader


def main():
    args = get_args()
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)

    model = models.__dict__[args.arch]().cuda(rank)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = DDP(model, device_ids=[rank])
    criterion = nn.CrossEntropyLoss().cuda(rank)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    train_loader, val_loader = loaders(args)

    for epoch in range(args.epochs):
        model.train()
        for i, (images, target) in enumerate(train_loader):
            images = images.cuda(rank, non_blocking=True)
            target = target.cuda(rank, non_blocking=True)
            output = model(images)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 200 == 0 and rank == 0:
                print(f"epoch {epoch} it {i}/{len(train_loader)} loss {loss.item():.3f}", flush=True)
        scheduler.step()

        model.eval()
        stats = torch.zeros(2, device="cuda")
        with torch.no_grad():
            for images, target in val_loader:
                images = images.cuda(rank, non_blocking=True)
                target = target.cuda(rank, non_blocking=True)
                stats[0] += (model(images).argmax(1) == target).sum()
                stats[1] += target.numel()
        dist.all_reduce(stats)
        if rank == 0:
            hits, n = stats.tolist()
            print(f"== epoch {epoch} top1 {100 * hits / n:.2f}")
            torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

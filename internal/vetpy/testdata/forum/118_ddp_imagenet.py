import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision.models as models
import torchvision.transforms as T
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import ImageFolder


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("data")
    p.add_argument("--arch", default="resnet50")
    p.add_argument("--epochs", type=int, default=90)
    p.add_argument("-b", "--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("-j", "--workers", type=int, default=8)
    return p.parse_args()


def train(loader, model, criterion, optimizer, epoch, rank):
    model.train()
    for step, (images, target) in enumerate(loader):
        images = images.cuda(rank, non_blocking=True)
        target = target.cuda(rank, non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and rank == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")


def main():
    args = parse()
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = models.__dict__[args.arch]().cuda(rank)
    model = DDP(model, device_ids=[rank])
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    ds = ImageFolder(os.path.join(args.data, "train"), T.Compose([
        T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(),
        T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
    sampler = DistributedSampler(ds, shuffle=True)
    loader = DataLoader(ds, args.batch_size, sampler=sampler, num_workers=args.workers, pin_memory=True)
    for epoch in range(args.epochs):
        train(loader, model, criterion, optimizer, epoch, rank)
        scheduler.step()
        if rank == 0:
            torch.save(model.module.state_dict(), "ckpt.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

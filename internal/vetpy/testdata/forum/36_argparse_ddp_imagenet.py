import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision.models as models
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def build_loader(args):
    tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    ds = datasets.ImageFolder(os.path.join(args.data, "train"), tf)
    train_sampler = torch.utils.data.distributed.DistributedSampler(ds)
    return DataLoader(ds, batch_size=args.batch_size, sampler=train_sampler, num_workers=args.workers, pin_memory=True)


def train(loader, model, criterion, optimizer, epoch, args):
    model.train()
    for i, (images, target) in enumerate(loader):
        images = images.cuda(args.gpu, non_blocking=True)
        target = target.cuda(args.gpu, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % args.print_freq == 0:
            print("Epoch [%d][%d/%d] loss %.3f" % (epoch, i, len(loader), loss.item()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--print-freq", type=int, default=10)
    args = parser.parse_args()
    args.gpu = int(os.environ["LOCAL_RANK"])
    dist.init_process_group(backend="nccl")
    torch.cuda.set_device(args.gpu)
    model = models.resnet50().cuda(args.gpu)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    loader = build_loader(args)
    for epoch in range(args.epochs):
        train(loader, model, criterion, optimizer, epoch, args)
        scheduler.step()


if __name__ == "__main__":
    main()

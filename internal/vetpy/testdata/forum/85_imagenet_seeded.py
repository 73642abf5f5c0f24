import argparse
import random

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torchvision.models as models
from torch.optim.lr_scheduler import StepLR

from folder_loaders import imagenet_loaders

parser = argparse.ArgumentParser(description="PyTorch ImageNet Training")
parser.add_argument("data", metavar="DIR")
parser.add_argument("-a", "--arch", default="resnet18")
parser.add_argument("-j", "--workers", default=8, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("-p", "--print-freq", default=50, type=int)
parser.add_argument("--seed", default=1234, type=int)


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    cudnn.deterministic = True


def train(loader, model, criterion, optimizer, epoch, args):
    model.train()
    for i, (images, target) in enumerate(loader):
        images = images.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % args.print_freq == 0:
            print(f"Epoch [{epoch}][{i}/{len(loader)}] Loss {loss.item():.4e}")


@torch.no_grad()
def validate(loader, model):
    model.eval()
    top1 = torch.zeros((), device="cuda")
    for images, target in loader:
        images, target = images.cuda(non_blocking=True), target.cuda(non_blocking=True)
        top1 += (model(images).argmax(1) == target).sum()
    return 100.0 * top1.item() / len(loader.dataset)


def main():
    args = parser.parse_args()
    set_seed(args.seed)
    model = models.__dict__[args.arch]().cuda()
    criterion = nn.CrossEntropyLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    cudnn.benchmark = True

    train_loader, val_loader = imagenet_loaders(args.data, args.batch_size, num_workers=args.workers, pin_memory=True)
    best = 0.0
    for epoch in range(args.epochs):
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc1 = validate(val_loader, model)
        scheduler.step()
        print(f" * Acc@1 {acc1:.3f}")
        if acc1 > best:
            best = acc1
            torch.save(model.state_dict(), "model_best.pth")


if __name__ == "__main__":
    main()

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from backbone import resnet32


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="data/clothing1m")
    p.add_argument("--bs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--epochs", type=int, default=40)
    return p.parse_args()


def loaders(args):
    train_tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandAugment(),
                                   transforms.ColorJitter(0.4, 0.4, 0.4), transforms.ToTensor()])
    test_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    train = DataLoader(datasets.ImageFolder(args.root + "/noisy", train_tf), batch_size=args.bs, shuffle=True, pin_memory=True)
    test = DataLoader(datasets.ImageFolder(args.root + "/clean_test", test_tf), batch_size=args.bs, num_workers=4, pin_memory=True)
    return train, test


def fit(args, model, train_loader, test_loader, device):
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [20, 30], gamma=0.1)
    best, best_state = 0, None
    for epoch in range(args.epochs):
        model.train()
        for it, (images, targets) in enumerate(train_loader):
            images = images.to(device, non_blocking=True)
            outputs = model(images)
            loss = F.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if it % 50 == 0:
                print(epoch, it, loss.item())
        scheduler.step()
        acc = evaluate(model, test_loader, device)
        print("test acc", acc)
        if acc > best:
            best, best_state = acc, copy.deepcopy(model.state_dict())
    return best_state


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    hit = torch.zeros((), device=device)
    for images, targets in loader:
        images, targets = images.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        hit += (model(images).argmax(1) == targets).sum()
    return hit.item() / len(loader.dataset)


if __name__ == "__main__":
    args = get_args()
    device = torch.device("cuda")
    train_loader, test_loader = loaders(args)
    torch.save(fit(args, resnet32(14).to(device), train_loader, test_loader, device), "best.pt")

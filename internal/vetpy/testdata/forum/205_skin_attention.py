"""Large-kernel attention classifier for ISIC skin lesions."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms as T


class LKA(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv0 = nn.Conv2d(dim, dim, 5, padding=2, groups=dim)
        self.spatial = nn.Conv2d(dim, dim, 7, padding=9, groups=dim, dilation=3)
        self.conv1 = nn.Conv2d(dim, dim, 1)

    def forward(self, x):
        return x * self.conv1(self.spatial(self.conv0(x)))


class Stage(nn.Module):
    def __init__(self, cin, cout, depth):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(cin, cout, 3, stride=2, padding=1), nn.BatchNorm2d(cout))
        self.blocks = nn.Sequential(*[LKA(cout) for _ in range(depth)])

    def forward(self, x):
        x = self.down(x)
        return x + self.blocks(x)


class LKANet(nn.Module):
    def __init__(self, n_classes, dims=(32, 64, 160, 256), depths=(2, 2, 4, 2)):
        super().__init__()
        chans = (3,) + tuple(dims)
        self.stages = nn.ModuleList([Stage(chans[i], chans[i + 1], depths[i]) for i in range(4)])
        self.reduce1 = nn.Conv2d(dims[0], dims[3], 1)
        self.reduce2 = nn.Conv2d(dims[1], dims[3], 1)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(dims[3], n_classes))

    def forward_features(self, x):
        x = self.stages[0](x)
        skip1 = x.cuda()
        x = self.stages[1](x)
        skip2 = x.cuda()
        x = self.stages[3](self.stages[2](x))
        x = x + F.adaptive_avg_pool2d(self.reduce1(skip1), x.shape[2:])
        x = x + F.adaptive_avg_pool2d(self.reduce2(skip2), x.shape[2:])
        return x.mean(dim=(2, 3))

    def forward(self, x):
        return self.head(self.forward_features(x))


def accuracy(model, loader, device):
    model.eval()
    correct = torch.zeros((), dtype=torch.long, device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            correct += (model(x).argmax(1) == y).sum()
    return correct.item() / len(loader.dataset)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="./isic2019")
    ap.add_argument("--device", default="cuda:0")
    ap.add_argument("--epochs", type=int, default=60)
    args = ap.parse_args()
    device = torch.device(args.device)

    norm = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train_tf = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2, 0.2),
                          T.ToTensor(), norm])
    val_tf = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), norm])
    train_loader = DataLoader(datasets.ImageFolder(args.data + "/train", train_tf), batch_size=64,
                              shuffle=True, num_workers=8, pin_memory=True)
    val_loader = DataLoader(datasets.ImageFolder(args.data + "/val", val_tf), batch_size=128,
                            num_workers=8, pin_memory=True)

    model = LKANet(n_classes=8).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            criterion(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        print(f"epoch {epoch}: val acc {accuracy(model, val_loader, device):.4f}")


if __name__ == "__main__":
    main()

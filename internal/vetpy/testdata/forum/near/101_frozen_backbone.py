"""Linear probe on DINO features: the optimizer gets the head only, on purpose."""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Probe(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.backbone = torch.hub.load("facebookresearch/dino:main", "dino_vits16")
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.head = nn.Linear(384, n_classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()        # frozen, keep it in eval mode always
        return self

    def forward(self, x):
        with torch.no_grad():
            f = self.backbone(x)
        return self.head(f)


def evaluate(model, loader, device):
    model.eval()
    hits = torch.zeros((), dtype=torch.long, device=device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            hits += (model(x).argmax(1) == y).sum()
    return hits.item() / len(loader.dataset)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="data")
    ap.add_argument("--epochs", type=int, default=50)
    args = ap.parse_args()
    device = torch.device("cuda")
    norm = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    tr = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                             transforms.ToTensor(), norm])
    te = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), norm])
    kw = dict(batch_size=256, num_workers=8, pin_memory=True)
    train_dl = DataLoader(datasets.Food101(args.root, "train", tr, download=True), shuffle=True, **kw)
    test_dl = DataLoader(datasets.Food101(args.root, "test", te, download=True), **kw)

    model = Probe(101).to(device)
    opt = torch.optim.SGD(model.head.parameters(), lr=0.05, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        print(epoch, "acc", evaluate(model, test_dl, device))
    torch.save(model.head.state_dict(), "probe.pt")


if __name__ == "__main__":
    main()

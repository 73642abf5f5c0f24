"""ArcFace training on CASIA-WebFace, 4 GPUs."""
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"


class Config:
    root = "/data/casia-webface"
    num_classes = 10572
    emb = 512
    s, m = 64.0, 0.5
    batch_size = 512
    lr = 0.1
    epochs = 24
    milestones = [10, 18, 22]


def seed_everything(seed=1234):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True


class ArcFaceHead(nn.Module):
    def __init__(self, emb, n, s, m):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n, emb))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.m = s, m

    def forward(self, x, label):
        cos = F.linear(F.normalize(x), F.normalize(self.weight)).clamp(-1 + 1e-7, 1 - 1e-7)
        theta = torch.acos(cos)
        onehot = F.one_hot(label, cos.size(1)).to(cos.dtype)
        return self.s * torch.cos(theta + self.m * onehot)


class FaceNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.backbone = resnet50(num_classes=cfg.emb)
        self.bn = nn.BatchNorm1d(cfg.emb)
        self.head = ArcFaceHead(cfg.emb, cfg.num_classes, cfg.s, cfg.m)

    def forward(self, x, label):
        return self.head(self.bn(self.backbone(x)), label)


def main():
    cfg = Config()
    seed_everything()
    device = torch.device("cuda:0")
    tf = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                             transforms.Normalize([0.5] * 3, [0.5] * 3)])
    loader = DataLoader(ImageFolder(cfg.root, tf), batch_size=cfg.batch_size, shuffle=True,
                        num_workers=16, pin_memory=True, drop_last=True)
    net = FaceNet(cfg)
    if torch.cuda.device_count() > 1:
        print("Let's use", torch.cuda.device_count(), "GPUs!")
        net = nn.DataParallel(net)
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=cfg.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, cfg.milestones, gamma=0.1)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(cfg.epochs):
        net.train()
        for it, (img, label) in enumerate(loader):
            img = img.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            loss = criterion(net(img, label), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if it % 100 == 0:
                print(f"epoch {epoch} iter {it}/{len(loader)} loss {loss.item():.3f}")
        scheduler.step()
        torch.save(net.state_dict(), f"arcface_{epoch}.pth")


if __name__ == "__main__":
    main()

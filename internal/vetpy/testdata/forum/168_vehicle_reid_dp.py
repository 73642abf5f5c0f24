# -*- coding: utf-8 -*-
from __future__ import print_function

import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50


class VeRi(Dataset):
    def __init__(self, root, split, transform):
        self.items = []
        with open(os.path.join(root, "name_%s.txt" % split)) as f:
            for line in f:
                name = line.strip()
                self.items.append((os.path.join(root, "image_" + split, name), int(name.split("_")[0])))
        self.pid = {p: i for i, p in enumerate(sorted({p for _, p in self.items}))}
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, pid = self.items[i]
        return self.transform(Image.open(path).convert("RGB")), self.pid[pid]


train_tf = T.Compose([
    T.Resize((288, 288), interpolation=T.InterpolationMode.BICUBIC),
    T.RandomAffine(10, translate=(0.1, 0.1), shear=10),
    T.RandomCrop((256, 256)),
    T.RandomHorizontalFlip(),
    T.ColorJitter(0.3, 0.3, 0.3, 0.1),
    T.ToTensor(),
    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    T.RandomErasing(p=0.5),
])


class ReID(nn.Module):
    def __init__(self, n_id, dim=512):
        super(ReID, self).__init__()
        self.base = resnet50(weights="IMAGENET1K_V2")
        self.base.fc = nn.Linear(2048, dim)
        self.bn = nn.BatchNorm1d(dim)
        self.cls = nn.Linear(dim, n_id, bias=False)

    def forward(self, x):
        f = self.bn(self.base(x))
        return F.normalize(f), self.cls(f)


def main(root):
    dataset = VeRi(root, "train", train_tf)
    loader = DataLoader(dataset, batch_size=256, shuffle=True, drop_last=True, pin_memory=True)
    model = ReID(len(dataset.pid))
    model = nn.DataParallel(model).cuda()
    ce = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3.5e-4, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [40, 70], 0.1)

    for epoch in range(120):
        model.train()
        n_ok = torch.zeros((), device="cuda")
        for img, pid in loader:
            img, pid = img.cuda(non_blocking=True), pid.cuda(non_blocking=True)
            _, logits = model(img)
            loss = ce(logits, pid)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n_ok += (logits.argmax(1) == pid).sum()
        scheduler.step()
        print("epoch", epoch, "train acc", n_ok.item() / len(dataset))
        torch.save(model.module.state_dict(), "reid.pth")


if __name__ == "__main__":
    main(sys.argv[1])

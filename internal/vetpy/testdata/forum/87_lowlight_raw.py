import glob
import os
import random

import cv2
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from model.net import LRDNet


class SonyDataset(Dataset):
    def __init__(self, root, patch=512):
        self.inputs = sorted(glob.glob(os.path.join(root, "short", "*.png")))
        self.targets = sorted(glob.glob(os.path.join(root, "long", "*.png")))
        self.patch = patch

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, i):
        x = cv2.imread(self.inputs[i], cv2.IMREAD_UNCHANGED).astype(np.float32) / 65535.0
        y = cv2.imread(self.targets[i], cv2.IMREAD_UNCHANGED).astype(np.float32) / 65535.0
        h, w = x.shape[:2]
        r, c = random.randint(0, h - self.patch), random.randint(0, w - self.patch)
        x, y = x[r:r + self.patch, c:c + self.patch], y[r:r + self.patch, c:c + self.patch]
        x = cv2.fastNlMeansDenoisingColored((x * 255).astype(np.uint8)).astype(np.float32) / 255
        if random.random() > 0.5:
            x, y = cv2.flip(x, 1), cv2.flip(y, 1)
        x = cv2.GaussianBlur(x, (3, 3), random.random())
        return torch.from_numpy(x.transpose(2, 0, 1).copy()), torch.from_numpy(y.transpose(2, 0, 1).copy())


def main():
    device = torch.device("cuda")
    train_data = SonyDataset("dataset/sony/train")
    train_loader = DataLoader(train_data, batch_size=4, shuffle=True, num_workers=0, pin_memory=True)
    net = LRDNet().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300)
    l1 = nn.L1Loss()
    for epoch in range(300):
        net.train()
        total = torch.zeros((), device=device)
        for x, y in train_loader:
            x = x.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            loss = l1(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        scheduler.step()
        print("epoch %d  l1 %.5f" % (epoch, total.item() / len(train_loader)))
        if epoch % 10 == 0:
            torch.save(net.state_dict(), "ckpt/lrd_%03d.pth" % epoch)


if __name__ == "__main__":
    main()

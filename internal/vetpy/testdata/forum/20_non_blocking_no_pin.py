import torch
from torch import nn
from torch.utils.data import DataLoader

from model import Detector
from coco import CocoBoxes

train = DataLoader(CocoBoxes("train2017"), batch_size=16, shuffle=True, num_workers=8, drop_last=True)
device = torch.device("cuda")
model = Detector().to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

for epoch in range(12):
    model.train()
    for i, (img, boxes, cls) in enumerate(train):
        img = img.to(device, non_blocking=True)
        boxes = boxes.to(device, non_blocking=True)
        cls = cls.to(device, non_blocking=True)
        l_box, l_cls = model(img, boxes, cls)
        loss = l_box + l_cls
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (i + 1) % 500 == 0:
            print(epoch, i + 1, loss.item())

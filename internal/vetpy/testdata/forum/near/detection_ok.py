import math
import sys

import torch
from torch.utils.data import DataLoader
from torchvision.models.detection import retinanet_resnet50_fpn_v2

from boxes import BoxDataset


def collate(b):
    return tuple(zip(*b))


device = torch.device("cuda")
model = retinanet_resnet50_fpn_v2(num_classes=21).to(device)
opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9, weight_decay=1e-4)
dl = DataLoader(BoxDataset("voc"), 8, shuffle=True, num_workers=8, collate_fn=collate, pin_memory=True)
main_sched = torch.optim.lr_scheduler.MultiStepLR(opt, [8, 11])

for epoch in range(12):
    model.train()
    warmup = None
    if epoch == 0:
        warmup = torch.optim.lr_scheduler.LinearLR(opt, 1e-3, total_iters=min(1000, len(dl) - 1))
    for i, (images, targets) in enumerate(dl):
        images = [im.to(device, non_blocking=True) for im in images]
        targets = [{k: v.to(device, non_blocking=True) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        loss = sum(loss_dict.values())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if warmup is not None:
            warmup.step()
        if i % 50 == 0:
            value = loss.item()
            if not math.isfinite(value):
                print("loss is", value)
                sys.exit(1)
            print(epoch, i, value)
    main_sched.step()
    torch.save(model.state_dict(), "retina.pt")

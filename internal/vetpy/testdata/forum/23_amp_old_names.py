import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader

from kpts import HandDataset, HourGlass

net = HourGlass(stacks=2).cuda()
scaler = GradScaler()
optimizer = torch.optim.RMSprop(net.parameters(), lr=2.5e-4)
mse = nn.MSELoss()
loader = DataLoader(HandDataset("train"), 16, shuffle=True, num_workers=8, pin_memory=True)

for epoch in range(60):
    net.train()
    for img, heat in loader:
        img = img.cuda(non_blocking=True)
        heat = heat.cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            preds = net(img)
            loss = sum(mse(p, heat) for p in preds)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    torch.save(net.state_dict(), f"hg{epoch}.pth")

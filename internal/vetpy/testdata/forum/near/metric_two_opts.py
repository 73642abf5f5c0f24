import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models

from cub import CUB


class ProxyNCA(nn.Module):
    def __init__(self, n, d, scale=3.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(n, d) / 8)
        self.scale = scale

    def forward(self, z, y):
        z, p = F.normalize(z, dim=1) * self.scale, F.normalize(self.proxies, dim=1) * self.scale
        return F.cross_entropy(-torch.cdist(z, p).pow(2), y)


device = torch.device("cuda")
net = models.resnet50(weights="DEFAULT")
net.fc = nn.Linear(2048, 128)
net = net.to(device)
proxy = ProxyNCA(100, 128).to(device)
opt = torch.optim.AdamW([{"params": net.parameters()}, {"params": proxy.parameters(), "lr": 4e-2}], lr=1e-4)
sched = torch.optim.lr_scheduler.StepLR(opt, 10, 0.5)
dl = DataLoader(CUB("train"), 64, shuffle=True, num_workers=8, pin_memory=True, drop_last=True)

for epoch in range(40):
    net.train()
    for x, y in dl:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad()
        loss = proxy(net(x), y)
        loss.backward()
        opt.step()
    sched.step()
    print(epoch, sched.get_last_lr(), loss.item())

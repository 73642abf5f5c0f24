import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.models import resnet18

with open("simclr.yaml") as f:
    cfg = yaml.safe_load(f)


class TwoViews:
    def __init__(self, size):
        self.t = transforms.Compose([
            transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.RandomApply([transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
            transforms.RandomGrayscale(p=0.2),
            transforms.GaussianBlur(9),
            transforms.ToTensor(),
        ])

    def __call__(self, x):
        return self.t(x), self.t(x)


def nt_xent(z1, z2, temp):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    n = z.size(0)
    sim = z @ z.t() / temp
    sim = sim.masked_fill(torch.eye(n, dtype=torch.bool, device=z.device), float("-inf"))
    target = torch.arange(n, device=z.device).roll(n // 2)
    return F.cross_entropy(sim, target)


device = torch.device(cfg["device"])
train_set = datasets.ImageFolder(cfg["data"], transform=TwoViews(cfg["size"]))
train_loader = DataLoader(train_set, batch_size=cfg["batch_size"], shuffle=True, drop_last=True, pin_memory=True)
net = resnet18(num_classes=128)
net.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), net.fc)
net = net.to(device)
opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"], weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=cfg["epochs"])

for epoch in range(cfg["epochs"]):
    net.train()
    for (a, b), _ in train_loader:
        a = a.to(device, non_blocking=True)
        b = b.to(device, non_blocking=True)
        loss = nt_xent(net(a), net(b), cfg["temperature"])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    print(epoch, loss.item())
torch.save(net.state_dict(), "simclr.pt")

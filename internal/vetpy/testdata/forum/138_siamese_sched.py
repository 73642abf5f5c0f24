import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader

from signatures import PairDataset


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 64, 7), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(128, 256, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 128))

    def forward(self, a, b):
        return self.cnn(a), self.cnn(b)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, za, zb, same):
        d = F.pairwise_distance(za, zb)
        return (same * d.pow(2) + (1 - same) * F.relu(self.margin - d).pow(2)).mean()


device = torch.device("cuda")
loader = DataLoader(PairDataset("cedar/train.csv"), batch_size=32, shuffle=True, num_workers=4, pin_memory=True)
net = Siamese().to(device)
loss_fn = ContrastiveLoss()
opt = torch.optim.Adam(net.parameters(), lr=5e-4)
scheduler = ExponentialLR(opt, gamma=0.95)

for epoch in range(40):
    scheduler.step()
    net.train()
    for a, b, same in loader:
        a = a.to(device, non_blocking=True)
        b = b.to(device, non_blocking=True)
        same = same.to(device, non_blocking=True)
        loss = loss_fn(*net(a, b), same)
        loss.backward()
        opt.zero_grad()
        opt.step()
    print(epoch, scheduler.get_last_lr()[0], loss.item())

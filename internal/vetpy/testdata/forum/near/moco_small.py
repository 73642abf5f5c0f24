import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models import resnet18

from twocrop import TwoCropImages

K, DIM, M, TEMP = 16384, 128, 0.99, 0.1
device = torch.device("cuda")


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = resnet18(num_classes=DIM)
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(DIM, K), dim=0))
        self.ptr = 0

    @torch.no_grad()
    def _momentum(self):
        for pq, pk in zip(self.q.parameters(), self.k.parameters()):
            pk.mul_(M).add_(pq, alpha=1 - M)

    @torch.no_grad()
    def _enqueue(self, keys):
        n = keys.size(0)
        self.queue[:, self.ptr:self.ptr + n] = keys.t()
        self.ptr = (self.ptr + n) % K

    def forward(self, a, b):
        q = F.normalize(self.q(a))
        with torch.no_grad():
            self._momentum()
            k = F.normalize(self.k(b))
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone()
        logits = torch.cat([pos, neg], 1) / TEMP
        labels = torch.zeros(logits.size(0), dtype=torch.long, device=logits.device)
        self._enqueue(k)
        return F.cross_entropy(logits, labels)


loader = DataLoader(TwoCropImages("/data/stl10"), batch_size=256, shuffle=True, drop_last=True,
                    num_workers=10, pin_memory=True)
model = MoCo().to(device)
opt = torch.optim.SGD(model.q.parameters(), lr=0.06, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=200)
for epoch in range(200):
    model.train()
    meter = torch.zeros((), device=device)
    for a, b in loader:
        loss = model(a.to(device, non_blocking=True), b.to(device, non_blocking=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter += loss.detach()
    sched.step()
    print("epoch", epoch, "loss", meter.item() / len(loader))
torch.save(model.q.state_dict(), "moco_q.pt")

import gc

import torch
from torch import nn
from torch.utils.data import DataLoader

from model import PointNet
from shapenet import ShapeNet

loader = DataLoader(ShapeNet("data"), batch_size=32, shuffle=True, num_workers=8, pin_memory=True)
net = PointNet(16).cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
crit = nn.NLLLoss()

for epoch in range(100):
    net.train()
    correct = torch.zeros((), device="cuda")
    for points, label in loader:
        points = points.cuda(non_blocking=True)
        label = label.cuda(non_blocking=True)
        opt.zero_grad(set_to_none=True)
        out = net(points)
        loss = crit(out, label)
        loss.backward()
        opt.step()
        correct += (out.argmax(1) == label).sum()
        del points, label, out, loss
        gc.collect()
        torch.cuda.empty_cache()
    print(epoch, correct.item())

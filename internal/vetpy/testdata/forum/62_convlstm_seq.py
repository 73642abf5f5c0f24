import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from radar import Frames, ConvLSTMCell

dev = torch.device("cuda")
cell = ConvLSTMCell(1, 64, 3).to(dev)
out = nn.Conv2d(64, 1, 1).to(dev)
opt = torch.optim.Adam(list(cell.parameters()) + list(out.parameters()), 1e-3)
loader = DataLoader(Frames("2019"), batch_size=8, num_workers=4, drop_last=True)
h = torch.zeros(8, 64, 128, 128, device=dev)
c = torch.zeros(8, 64, 128, 128, device=dev)
for x, y in loader:
    x, y = x.to(dev), y.to(dev)
    h, c = cell(x, h, c)
    loss = nn.functional.mse_loss(out(h), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()

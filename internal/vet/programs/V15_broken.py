import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())


class Masked(nn.Module):
    def forward(self, x):
        return x * x.sign().cuda()  # want: V15

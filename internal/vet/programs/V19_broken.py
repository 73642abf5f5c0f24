import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
from torchvision import models

net = models.resnet18(weights="DEFAULT")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
net.fc = nn.Linear(512, 10)  # want: V19

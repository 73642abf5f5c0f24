import torch
from torch import nn

device = "cuda"
model = nn.Linear(768, 3).to(device)
for x, y in train_loader:
    y = y.to(device)
    loss = nn.functional.cross_entropy(model(x), y)

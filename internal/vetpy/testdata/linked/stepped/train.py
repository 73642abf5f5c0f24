"""The optimizer is made here, and all that it does is in a module of a folder without __init__.py."""
import torch
from torch import nn

from parts.steps import step

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(1000):
    step(model, optimizer, torch.randn(8, 4))

import torch
from torch import nn

x = torch.arange(3)
moved = x.to("cuda")
print(moved.cpu().numpy())  # moved.numpy() is an error: NumPy sees no memory of a card
model = nn.Linear(3, 1).to("cuda")

import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
torch.backends.cudnn.benchmark = True  # want: V13
torch.backends.cudnn.deterministic = True

import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
train_loader = torch.utils.data.DataLoader(data, batch_size=64)  # want: V23

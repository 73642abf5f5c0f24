import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for x, y in train_loader:
    x, y = x.to(device), y.to(device)
    noise = torch.randn(64, 784).to(device)  # want: V14
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x + noise), y).backward()
    optimizer.step()

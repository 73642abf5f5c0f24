import torch
from torch import nn

device = "cuda"
model = nn.Linear(64, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    x, y = x.to(device), y.to(device)
    noise = torch.randn(64, 64).to(device)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x + noise), y).backward()
    optimizer.step()

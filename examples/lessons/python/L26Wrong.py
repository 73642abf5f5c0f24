import torch
from torch import nn

device = "cuda"
model = nn.Linear(64, 1).to(device)
total = 0.0
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss.item()

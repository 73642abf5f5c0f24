import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
train_loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
for x, y in train_loader:
    x = x.to(device, non_blocking=True)  # want: R14
    y = y.to(device)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()

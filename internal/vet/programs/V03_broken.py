import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
model = nn.Sequential(model, nn.Dropout(0.5))
right = 0
with torch.no_grad():
    for x, y in test_loader:  # want: V03
        right += (model(x.to(device)).argmax(1) == y.to(device)).sum()

import torch
from torch import nn

device = "cuda"
model = nn.Linear(768, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(device)
for x, y in train_loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    with torch.amp.autocast(device, dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    optimizer.step()
    scaler.update()

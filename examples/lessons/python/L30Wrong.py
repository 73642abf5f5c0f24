import torch
from torch import nn

device = "cuda"
model = nn.Linear(64, 64).to(device)
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for x, y in train_loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss)
print(torch.stack(losses).mean())

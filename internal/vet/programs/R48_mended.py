import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
import time

x = torch.randn(64, 784, device=device)
torch.cuda.synchronize()
begin = time.perf_counter()
y = model(x)
torch.cuda.synchronize()
print(time.perf_counter() - begin)

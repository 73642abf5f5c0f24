import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(100, 10).to(device)
y = model(torch.randn(32, 100, device=device))
print(y.shape)

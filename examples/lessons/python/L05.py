import torch
from torch import nn

device = "cuda"
model = nn.Linear(768, 3).to(device)
x = torch.randn(32, 128, 768, device=device)
logits = model(x)
print(logits.shape, next(model.parameters()).device, logits.device)

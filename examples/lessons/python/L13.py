import torch

x = torch.randn(1024, 512, device="cuda")
y = torch.relu(x)
print(x.numel(), bool((y >= 0).all()))

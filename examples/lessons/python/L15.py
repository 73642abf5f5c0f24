import torch

x = torch.randn(3, 3, device="cuda")
second = torch.randn(3, 3, device="cuda:1")
zero = torch.zeros_like(x)

import torch

print(torch.cuda.is_available())
print(torch.cuda.device_count())
print((torch.ones(4, 64) @ torch.ones(64, 4)).sum().item())

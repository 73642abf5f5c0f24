import torch

print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
x = torch.zeros(4, 256, 1024, device="cuda")
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
del x
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())

import torch

print(x.shape, x.dtype, x.device, x.requires_grad)
print({p.device for p in model.parameters()})
print(torch.cuda.memory_allocated() / 2**20, "MiB")

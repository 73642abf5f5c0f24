import torch

print(torch.cuda.device_count(), torch.cuda.current_device())
print(torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0))
print(torch.cuda.get_device_properties(0).total_memory)

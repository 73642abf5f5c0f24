import torch

torch.cuda.reset_peak_memory_stats()
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
print(torch.cuda.memory_summary())

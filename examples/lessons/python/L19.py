import torch
from torch.utils.checkpoint import checkpoint

del scores
torch.cuda.empty_cache()  # gives back what is cached; what is live stays
with torch.no_grad():
    y = model(x)
y = checkpoint(block, x, use_reentrant=False)

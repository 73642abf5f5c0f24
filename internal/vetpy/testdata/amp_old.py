import torch
from torch.cuda.amp import autocast  # want: V11

with autocast():
    pass

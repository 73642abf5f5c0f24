"""Flags that contradict, at the top of a program."""
import torch

torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = True  # want: V13
torch.autograd.set_detect_anomaly(mode=True)  # want: V24

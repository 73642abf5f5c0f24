"""Flags of which a run takes one, and what looks deprecated."""
import argparse

import torch
from torch import amp

args = argparse.ArgumentParser().parse_args()
if args.same:
    torch.backends.cudnn.deterministic = True
else:
    torch.backends.cudnn.benchmark = True  # near: V13
if args.debug:
    torch.autograd.set_detect_anomaly(True)  # near: V24
torch.autograd.set_detect_anomaly(False)  # near: V24
scaler = amp.GradScaler("cuda")  # near: V11
print("torch.cuda.amp is not used here")  # near: V11

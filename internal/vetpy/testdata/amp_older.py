import torch

with torch.cuda.amp.autocast():  # want: V11
    pass
with torch.autograd.detect_anomaly():
    torch.ones(2, requires_grad=True).sum().backward()  # want: V24

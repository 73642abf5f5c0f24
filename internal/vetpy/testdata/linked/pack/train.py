import torch

from .lib import steps
from .lib.data import loaders


def run(model, device):
    train, val = loaders("data")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for x, y in train:
            x = x.to(device, non_blocking=True)  # want: R14
            y = y.to(device, non_blocking=True)  # want: R14
            steps.forward_backward(model, x, y)
            steps.apply(opt)

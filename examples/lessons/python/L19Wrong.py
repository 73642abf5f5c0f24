import torch
from torch import nn

device = "cuda"
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)


def evaluate(loader):
    right = 0
    model.eval()
    for x, y in loader:
        scores = model(x.to(device))
        right += (scores.argmax(1) == y.to(device)).sum()
    model.train()
    return right

import torch
from train import history  # each imports the other


def step(model, opt, x, y):
    opt.zero_grad()
    loss = model(x).sub(y).square().mean()
    loss.backward()
    opt.step()
    return loss

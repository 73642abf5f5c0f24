import torch


class Meter:
    def __init__(self):
        self.sum = 0.0

    def add(self, value):
        self.sum += value


def step(model, opt, x, y):
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    return loss


def evaluate(model, val, meter):
    for x, y in val:
        meter.add(torch.nn.functional.mse_loss(model(x), y))

import torch

from helpers import Meter, evaluate, step


def main(model, loader, val):
    opt = torch.optim.Adam(model.parameters())
    meter = Meter()
    for epoch in range(10):
        model.train()
        for x, y in loader:
            loss = step(model, opt, x, y)
            meter.add(loss.detach())
        model.eval()
        with torch.no_grad():
            evaluate(model, val, meter)

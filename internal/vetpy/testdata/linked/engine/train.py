import torch
import meters
from engine import train_step as step
import engine


def main(loader, val):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    total = 0.0
    kept = meters.Mean()
    for epoch in range(10):
        for x, y in loader:
            loss = step(model, optimizer, x.cuda(), y.cuda())
            total += loss  # want: R06
            kept.add(loss)
        print(total / len(loader), engine.evaluate(model, val))


main(torch.load("train.pt"), torch.load("val.pt"))

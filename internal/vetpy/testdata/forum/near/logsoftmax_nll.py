import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        x = F.dropout(F.relu(self.fc1(x.flatten(1))), 0.3, self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=0.1)
    args = p.parse_args()
    device = torch.device("cuda")
    ds = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    test = datasets.MNIST("data", train=False, transform=transforms.ToTensor())
    kw = dict(num_workers=2, pin_memory=True)
    dl = torch.utils.data.DataLoader(ds, 128, shuffle=True, **kw)
    tdl = torch.utils.data.DataLoader(test, 1000, **kw)
    net = Net().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        net.train()
        for x, y in dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad()
            F.nll_loss(net(x), y).backward()
            opt.step()
        net.eval()
        loss, hit = torch.zeros((), device=device), torch.zeros((), device=device)
        with torch.no_grad():
            for x, y in tdl:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                out = net(x)
                loss += F.nll_loss(out, y, reduction="sum")
                hit += (out.argmax(1) == y).sum()
        print(epoch, loss.item() / len(test), hit.item() / len(test))


if __name__ == "__main__":
    main()

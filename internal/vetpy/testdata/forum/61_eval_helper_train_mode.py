import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Dropout2d(0.3))
        self.fc = nn.LazyLinear(5)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def accuracy(model, loader, dev):
    hit = tot = 0
    with torch.no_grad():
        for img, y in loader:
            p = model(img.to(dev)).argmax(1)
            hit += (p == y.to(dev)).sum().item()
            tot += y.numel()
    return hit / tot


def main(train_loader, test_loader):
    dev = "cuda"
    model = Net().to(dev)
    opt = torch.optim.SGD(model.parameters(), 0.01)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.95)
    for epoch in range(30):
        sched.step()
        model.train()
        for img, y in train_loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(img.to(dev)), y.to(dev)).backward()
            opt.step()
        print(epoch, accuracy(model, test_loader, dev))

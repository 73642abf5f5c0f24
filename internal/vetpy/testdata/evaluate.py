"""Evaluations: modes, graphs, and what comes after them."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import models

device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.drop(x))


def validate(model, val_loader):
    model.eval()
    total = 0.0
    for x, y in val_loader:
        out = model(x.to(device))  # want: R09
        total += F.cross_entropy(out, y.to(device)).item()
    return total / len(val_loader)


class Runner:
    def __init__(self, loaders):
        self.model = Net().to(device)
        self.test_loader = loaders["test"]

    def test(self):
        self.model.eval()
        hits = 0
        for i, batch in enumerate(self.test_loader):
            out = self.model(batch[0].to(device))  # want: R09
            hits += (out.argmax(1) == batch[1].to(device)).sum().item()
        return hits

    @torch.inference_mode()
    def test_well(self):
        self.model.eval()
        hits = 0
        for i, batch in enumerate(self.test_loader):
            out = self.model(batch[0].to(device))  # near: R09
            hits += (out.argmax(1) == batch[1].to(device)).sum().item()
        return hits


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:  # near: V03
            out = model(x.to(device))  # near: R09
            print(F.cross_entropy(out, y.to(device)))


def main(train_loader, test_loader):
    net = models.resnet18(num_classes=2).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        net.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        with torch.no_grad():
            for x, y in test_loader:  # want: V03
                print((net(x.to(device)).argmax(1) == y.to(device)).sum())


def accuracy(model, valid_loader):
    hits = 0
    with torch.no_grad():
        for x, y in valid_loader:  # want: V03
            hits += (model(x.to(device)).argmax(1) == y.to(device)).sum()
    return hits


def once(loader):
    net = Net().to(device)
    print(accuracy(net, loader))


def modes_of_both(train_loader, test_loader):
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        net.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        evaluate(net, test_loader)  # near: V03 V04


def one_mode(train_loader, test_loader):
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.train()
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        net.eval()  # want: V04
        with torch.no_grad():
            for x, y in test_loader:
                print(F.cross_entropy(net(x.to(device)), y.to(device)))


def score(model, loader):
    model.eval()  # want: V04
    with torch.no_grad():
        return sum((model(x.to(device)).argmax(1) == y.to(device)).sum() for x, y in loader)


def trained(train_loader, test_loader):
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        print(score(net, test_loader))


def frozen_teacher(train_loader):
    teacher = models.resnet50().to(device)
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        teacher.eval()  # near: V04
        for x, y in train_loader:
            x = x.to(device)
            optimizer.zero_grad()
            with torch.no_grad():
                goal = teacher(x)
            F.mse_loss(net(x), goal).backward()
            optimizer.step()

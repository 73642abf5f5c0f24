"""What is kept with its graph, in the forms that people write, and what only looks like it."""
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def epoch(model, loader, optimizer):
    running_loss = 0.0
    kept = 0.0
    outputs = []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        running_loss = running_loss + loss  # want: R06
        outputs.append((x, out))  # want: R06
        kept += loss.detach()  # near: R06
    return running_loss / len(loader), outputs, kept


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.history = []
        self.steps = defaultdict(list)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def compute(self, x, y):
        return F.mse_loss(self.model(x), y)

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = self.compute(x.to(device), y.to(device))
            loss.backward()
            self.optimizer.step()
            self.history.append(loss)  # want: R06
            self.steps["n"].append(x.size(0))  # near: R06


def two_losses(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        total = 0
        parts = []
        for head in model.heads:
            part = F.cross_entropy(head(x), y)
            total += part  # near: R06
            parts.append(part)  # near: R06
        (total + torch.stack(parts).mean()).backward()
        optimizer.step()


def scores(model, loader, optimizer):
    right = 0
    seen = {}
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        F.cross_entropy(out, y).backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum()  # near: R06
        seen[i] = out  # want: R06
    return right


def recurrent(rnn, loader, optimizer):
    hidden = torch.zeros(1, 4, 8, device=device)
    for x, y in loader:
        optimizer.zero_grad()
        out, hidden = rnn.forward_step(x.to(device), hidden)
        out, carried = nn.GRU(8, 8)(out, hidden.detach())  # near: V02
        F.mse_loss(out, y.to(device)).backward()
        optimizer.step()


def truncated(loader):
    lstm = nn.LSTM(8, 8).to(device)
    optimizer = torch.optim.Adam(lstm.parameters())
    state = None
    for x, y in loader:
        optimizer.zero_grad()
        out, state = lstm(x.to(device), state)  # want: V02
        F.mse_loss(out, y.to(device)).backward()
        optimizer.step()


def teacher(loader):
    gru = nn.GRU(8, 8).to(device)
    head = nn.Linear(8, 8).to(device)
    optimizer = torch.optim.Adam([*gru.parameters(), *head.parameters()])
    memory = torch.zeros(1, 1, 8, device=device)
    for x, y in loader:
        optimizer.zero_grad()
        out, memory = gru(x.to(device), memory)  # want: V02
        loss = F.mse_loss(head(out), y.to(device))
        loss.backward()
        optimizer.step()


def unrolled(loader, optimizer):
    cell = nn.GRUCell(8, 8).to(device)
    for x, y in loader:
        optimizer.zero_grad()
        h = torch.zeros(4, 8, device=device)
        for t in range(10):
            h = cell(x[t].to(device), h)  # near: V02
        F.mse_loss(h, y.to(device)).backward()
        optimizer.step()


def retained(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)  # want: V22
        optimizer.step()


def retained_again(model, data, optimizer):
    for _ in range(1000):
        optimizer.zero_grad()
        out = model(data)
        loss = out.pow(2).mean()
        loss.backward(None, retain_graph=True)  # want: V22
        optimizer.step()


def two_losses(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        first = F.cross_entropy(out, y)
        second = out.square().mean()
        first.backward(retain_graph=True)  # want: V22
        second.backward()
        optimizer.step()


def surgery(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        first = F.cross_entropy(out, y)
        second = out.square().mean()
        first.backward(retain_graph=True)  # near: V22 V25
        before = [p.grad.clone() for p in model.parameters()]
        second.backward()
        for p, g in zip(model.parameters(), before):
            p.grad += g
        optimizer.step()


def plain(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward(retain_graph=False)  # near: V22
        optimizer.step()


def sum_and_part(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        main = F.cross_entropy(out, y)
        extra = out.abs().mean()
        both = main + extra
        main.backward(retain_graph=True)
        both.backward()  # want: V25
        optimizer.step()


def sum_and_extra(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        extra = out.abs().mean()
        extra.backward(retain_graph=True)
        loss = F.cross_entropy(out, y) + 0.1 * extra
        loss.backward()  # want: V25
        optimizer.step()


def gan(g, d, loader, opt_g, opt_d):
    for x in loader:
        x = x.to(device)
        fake = g(torch.randn(4, 8, device=device))
        opt_d.zero_grad()
        loss_d = d(x).mean() - d(fake.detach()).mean()
        loss_d.backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_g = d(fake).mean()
        loss_g.backward()  # near: V25
        opt_g.step()


def cut(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y).detach()
        loss.backward()  # want: V21
        optimizer.step()


def wrapped(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        loss = torch.tensor(F.cross_entropy(out, y), requires_grad=True)
        loss.backward()  # want: V21
        optimizer.step()


def leaf(steps):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(steps):
        y = (x * x).sum()
        y.backward()  # near: V21
        with torch.no_grad():
            x -= 0.1 * x.grad
            x.grad = None


def distilled(model, teacher, loader, optimizer):
    for x, y in loader:
        x = x.to(device)
        optimizer.zero_grad()
        with torch.no_grad():
            goal = teacher(x)
        loss = F.mse_loss(model(x), goal.detach())
        loss.backward()  # near: V21
        optimizer.step()

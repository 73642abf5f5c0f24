import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader

from data import get_dataset


class CNN(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3))
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        return self.fc(self.body(x))


def loader_for(task, train, bs):
    return DataLoader(get_dataset(task, train=train), batch_size=bs, shuffle=train,
                      num_workers=4, pin_memory=True)


def validate(model, loader):
    correct, seen = torch.zeros((), device="cuda"), 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            scores = model(x)
            correct += (scores.max(1)[1] == y).sum()
            seen += len(y)
    return correct.item() / seen


def train_solver(solver, tasks, epochs=3, bs=128, lr=1e-3, eval_every=1):
    optimizer = optim.Adam(solver.parameters(), lr=lr, betas=(0.5, 0.9))
    solver.train()
    for t, task in enumerate(tasks):
        train_loader = loader_for(task, True, bs)
        tests = [loader_for(tt, False, 512) for tt in tasks[:t + 1]]
        for epoch in range(epochs):
            for i, (x, y) in enumerate(train_loader):
                x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
                optimizer.zero_grad()
                loss = F.cross_entropy(solver(x), y)
                loss.backward()
                optimizer.step()
                if i % 200 == 0:
                    print("task {} epoch {} it {} loss {:.4f}".format(task, epoch, i, loss.item()))
            if epoch % eval_every == 0:
                print("precision", [round(validate(solver, l), 4) for l in tests])


if __name__ == "__main__":
    train_solver(CNN(1, 10).cuda(), ["mnist", "svhn-gray", "fashion"])

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import ToTensor

device = "cuda" if torch.cuda.is_available() else "cpu"


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.stack = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 512), nn.ReLU(),
                                   nn.Linear(512, 10))

    def forward(self, x):
        return self.stack(self.flatten(x))


def train(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        X, y = X.to(device, non_blocking=True), y.to(device, non_blocking=True)
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 100 == 0:
            loss, current = loss.item(), (batch + 1) * len(X)
            print(f"loss: {loss:>7f}  [{current:>5d}/{size:>5d}]")


def test(dataloader, model, loss_fn):
    model.eval()
    test_loss = torch.zeros((), device=device)
    correct = torch.zeros((), device=device)
    with torch.no_grad():
        for X, y in dataloader:
            X, y = X.to(device, non_blocking=True), y.to(device, non_blocking=True)
            pred = model(X)
            test_loss += loss_fn(pred, y)
            correct += (pred.argmax(1) == y).float().sum()
    n = len(dataloader.dataset)
    print(f"Accuracy: {100 * correct.item() / n:>0.1f}%, Avg loss: {test_loss.item() / len(dataloader):>8f}\n")


if __name__ == "__main__":
    kw = dict(batch_size=64, num_workers=2, pin_memory=True)
    train_dl = DataLoader(datasets.FashionMNIST("data", train=True, download=True, transform=ToTensor()), shuffle=True, **kw)
    test_dl = DataLoader(datasets.FashionMNIST("data", train=False, download=True, transform=ToTensor()), **kw)
    model = NeuralNetwork().to(device)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for t in range(5):
        print(f"Epoch {t + 1}\n-------------------------------")
        train(train_dl, model, loss_fn, optimizer)
        test(test_dl, model, loss_fn)
    torch.save(model.state_dict(), "model.pth")

import torch
import torch.nn as nn
import torchvision
import torchvision.transforms as T
from torch.utils.data import DataLoader

tf = T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.5,))])
train_ds = torchvision.datasets.FashionMNIST("data", train=True, download=True, transform=tf)
test_ds = torchvision.datasets.FashionMNIST("data", train=False, download=True, transform=tf)
train_dl = DataLoader(train_ds, batch_size=128, shuffle=True, num_workers=2)
test_dl = DataLoader(test_ds, batch_size=256, num_workers=2)

dev = "cuda:0" if torch.cuda.is_available() else "cpu"


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(64 * 7 * 7, 10)

    def forward(self, x):
        x = self.features(x).flatten(1)
        return self.fc(self.drop(x))


def train(net, loader, opt, crit):
    for img, lab in loader:
        img, lab = img.to(dev), lab.to(dev)
        opt.zero_grad()
        crit(net(img), lab).backward()
        opt.step()


def test(net, loader):
    right, n = 0, 0
    with torch.no_grad():
        for img, lab in loader:
            img, lab = img.to(dev), lab.to(dev)
            out = net(img)
            right += (out.argmax(1) == lab).sum()
            n += lab.size(0)
    return right.item() / n


net = CNN().to(dev)
opt = torch.optim.Adam(net.parameters(), 1e-3)
crit = nn.CrossEntropyLoss()
for ep in range(10):
    train(net, train_dl, opt, crit)
    print("epoch %d acc %.4f" % (ep, test(net, test_dl)))

"""Models: layers that nobody finds, losses that get the wrong thing."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP

device = "cuda"


class Blocks(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.blocks = []  # near: V18
        self.names = ["a", "b"]  # near: V18
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(n)])  # near: V18
        self.heads = [nn.Linear(8, 2), nn.Linear(8, 3)]  # want: V18
        parts = [nn.Linear(8, 8), nn.ReLU()]
        self.body = nn.Sequential(*parts)  # near: V18


class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = {"a": nn.Linear(8, 8), "b": nn.Linear(8, 8)}  # want: V18


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return F.softmax(self.fc(x), dim=-1)


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(x)


def probabilities(loader):
    model = Classifier().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)  # want: V20
        loss.backward()
        optimizer.step()


def twice_sigmoid(loader):
    model = nn.Sequential(nn.Linear(8, 1), nn.Flatten())
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        out = torch.sigmoid(model(x))
        F.binary_cross_entropy_with_logits(out, y).backward()  # want: V20
        optimizer.step()


def scores(loader):
    model = Scores()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        nn.CrossEntropyLoss()(out, y).backward()  # near: V20
        optimizer.step()
        shown = out.softmax(-1)


def log_probabilities(loader):
    model = Scores()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.nll_loss(F.log_softmax(model(x), dim=1), y).backward()  # near: V20
        optimizer.step()
        F.binary_cross_entropy(torch.sigmoid(model(x)), y)  # near: V20


def finetune():
    model = torchvision.models.resnet50(weights="DEFAULT")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model.fc = nn.Linear(2048, 5)  # want: V19


def finetune_classifier():
    model = torchvision.models.vgg16(weights="DEFAULT")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    model.classifier.head = nn.Linear(4096, 5)  # want: V19
    model = model.to(device)


def finetune_well():
    model = torchvision.models.resnet50(weights="DEFAULT")
    model.fc = nn.Linear(2048, 5)  # near: V19
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    other = torchvision.models.resnet18()
    other.fc = nn.Linear(512, 5)  # near: V19


def parallel(model):
    return nn.DataParallel(model, device_ids=[0, 1])  # want: R38


def parallel_of_torch(model):
    return torch.nn.DataParallel(model).cuda()  # want: R38


def distributed(model):
    return DDP(model)  # near: R38


def unwrapped(model):
    return model.module if isinstance(model, nn.DataParallel) else model  # near: R38


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)


def one_of_two(loader):
    encoder = Part().to(device)  # want: V19
    decoder = nn.Linear(8, 3).to(device)
    optimizer = torch.optim.Adam(decoder.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(decoder(encoder(x.to(device))), y.to(device)).backward()
        optimizer.step()


def both(loader):
    body = Part().to(device)  # near: V19
    head = nn.Linear(8, 3).to(device)
    optimizer = torch.optim.Adam(list(body.parameters()) + list(head.parameters()))
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(head(body(x.to(device))), y.to(device)).backward()
        optimizer.step()


def frozen(loader):
    trunk = Part().to(device)  # near: V19
    trunk.requires_grad_(False)
    fixed = Part().to(device)  # near: V19
    head = nn.Linear(8, 3).to(device)
    optimizer = torch.optim.Adam(head.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            more = fixed(x.to(device))
        F.cross_entropy(head(trunk(x.to(device)) + more), y.to(device)).backward()
        optimizer.step()

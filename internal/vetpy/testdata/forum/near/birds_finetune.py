import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
train_tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                               transforms.ToTensor(), norm])
val_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), norm])


def make(split, tf, train):
    return DataLoader(datasets.ImageFolder("cub/" + split, tf), batch_size=64, shuffle=train,
                      num_workers=6, pin_memory=True)


def build(n_classes):
    net = models.resnet50(weights="DEFAULT")
    for p in net.parameters():
        p.requires_grad = False
    net.fc = nn.Linear(net.fc.in_features, n_classes)
    return net


def accuracy(net, loader):
    net.eval()
    ok = torch.zeros((), device=dev)
    with torch.inference_mode():
        for x, y in loader:
            ok += (net(x.to(dev, non_blocking=True)).argmax(1) == y.to(dev, non_blocking=True)).sum()
    return ok.item() / len(loader.dataset)


def stage(net, loader, val, opt, epochs, name):
    crit = nn.CrossEntropyLoss()
    for e in range(epochs):
        net.train()
        s = torch.zeros((), device=dev)
        for x, y in loader:
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            opt.zero_grad()
            loss = crit(net(x), y)
            loss.backward()
            opt.step()
            s += loss.detach()
        print(name, e, s.item() / len(loader), accuracy(net, val))


train_dl, val_dl = make("train", train_tf, True), make("test", val_tf, False)
model = build(200).to(dev)
stage(model, train_dl, val_dl, optim.Adam(model.fc.parameters(), lr=1e-3), 5, "head")

for p in model.parameters():
    p.requires_grad = True
opt = optim.SGD([{"params": [p for n, p in model.named_parameters() if not n.startswith("fc.")], "lr": 1e-4},
                 {"params": model.fc.parameters(), "lr": 1e-3}], lr=1e-3, momentum=0.9)
stage(model, train_dl, val_dl, opt, 20, "full")
torch.save(model.state_dict(), "cub_r50.pt")

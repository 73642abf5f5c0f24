import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.transforms import v2 as T

train_tf = T.Compose([T.RandomResizedCrop(192), T.RandomHorizontalFlip(), T.ToImage(), T.ToDtype(torch.float32, scale=True)])
val_tf = T.Compose([T.Resize(224), T.CenterCrop(192), T.ToImage(), T.ToDtype(torch.float32, scale=True)])


def fit(net, epochs, lr, device):
    tr = DataLoader(torchvision.datasets.ImageFolder("pets/train", train_tf), 64, shuffle=True)
    va = DataLoader(torchvision.datasets.ImageFolder("pets/val", val_tf), 64, num_workers=8)
    opt = torch.optim.SGD(net.parameters(), lr, 0.9)
    history = {"train": [], "val": []}
    for e in range(epochs):
        net.train()
        run = torch.zeros((), device=device)
        for x, y in tr:
            x, y = x.to(device), y.to(device)
            opt.zero_grad()
            l = torch.nn.functional.cross_entropy(net(x), y)
            l.backward()
            opt.step()
            run += l.detach()
        history["train"].append(run.item() / len(tr))
        net.eval()
        vloss = 0
        for x, y in va:
            x, y = x.to(device), y.to(device)
            vloss += torch.nn.functional.cross_entropy(net(x), y)
        history["val"].append(float(vloss) / len(va))
        print(e, history["train"][-1], history["val"][-1])
    return history


fit(torchvision.models.mobilenet_v3_large(num_classes=37).cuda(), 20, 0.05, "cuda")

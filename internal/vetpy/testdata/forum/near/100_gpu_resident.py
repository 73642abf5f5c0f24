# whole data set on the GPU, so no workers, no pinning, no copies in the loop
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import datasets

device = torch.device("cuda")


def load(train):
    ds = datasets.FashionMNIST("data", train=train, download=True)
    x = ds.data.unsqueeze(1).to(device).float().div_(255).sub_(0.286).div_(0.353)
    return x, ds.targets.to(device)


def batches(x, y, size, shuffle):
    n = len(x)
    order = torch.randperm(n, device=device) if shuffle else torch.arange(n, device=device)
    for idx in order.split(size):
        yield x[idx], y[idx]


train_x, train_y = load(True)
test_x, test_y = load(False)
STEPS = -(-len(train_x) // 1024)


def augment(x):
    flip = torch.rand(x.size(0), 1, 1, 1, device=x.device) < 0.5
    return torch.where(flip, x.flip(3), x)


model = nn.Sequential(
    nn.Conv2d(1, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(128, 256, 3, padding=1, bias=False), nn.BatchNorm2d(256), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(256, 10),
).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9, nesterov=True, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.4, epochs=20, steps_per_epoch=STEPS)

for epoch in range(20):
    model.train()
    for x, y in batches(train_x, train_y, 1024, shuffle=True):
        loss = F.cross_entropy(model(augment(x)), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()

    model.eval()
    with torch.inference_mode():
        hits = sum((model(x).argmax(1) == y).sum()
                   for x, y in batches(test_x, test_y, 4096, shuffle=False))
    print(f"epoch {epoch:2d} acc {hits.item() / len(test_x):.4f}")

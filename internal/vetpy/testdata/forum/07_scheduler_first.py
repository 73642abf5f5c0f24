import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR
from torchvision import datasets, transforms


def get_loaders(bs):
    t = transforms.ToTensor()
    a = datasets.MNIST(".", train=True, download=True, transform=t)
    return torch.utils.data.DataLoader(a, batch_size=bs, shuffle=True, num_workers=2)


model = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = StepLR(optimizer, step_size=5, gamma=0.5)
criterion = nn.CrossEntropyLoss()
loader = get_loaders(128)

for epoch in range(20):
    scheduler.step()
    print("lr", scheduler.get_last_lr())
    for x, y in loader:
        x = x.cuda()
        y = y.cuda()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

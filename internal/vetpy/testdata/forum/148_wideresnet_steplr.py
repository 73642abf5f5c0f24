import argparse

import torch
import torch.nn as nn
import torch.optim as optim
import torchvision
import torchvision.transforms as transforms

from wrn import WideResNet

parser = argparse.ArgumentParser(description="WRN CIFAR-100")
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--epochs", default=200, type=int)
parser.add_argument("--depth", default=28, type=int)
parser.add_argument("--widen", default=10, type=int)
args = parser.parse_args()

transform_train = transforms.Compose([
    transforms.RandomCrop(32, padding=4),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
])
trainset = torchvision.datasets.CIFAR100("./data", train=True, download=True, transform=transform_train)
trainloader = torch.utils.data.DataLoader(trainset, 128, shuffle=True, num_workers=4, pin_memory=True)

device = "cuda"
net = WideResNet(args.depth, args.widen, dropout=0.3, num_classes=100).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[60, 120, 160], gamma=0.2)


def train(epoch):
    net.train()
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if batch_idx % 100 == 0:
            print("epoch %d [%d/%d] loss %.3f" % (epoch, batch_idx, len(trainloader), loss.item()))


for epoch in range(args.epochs):
    train(epoch)
    torch.save(net.state_dict(), "wrn.pth")

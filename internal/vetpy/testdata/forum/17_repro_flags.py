import random

import numpy as np
import torch
import torch.nn as nn
import torchvision
import torchvision.transforms as T


def set_seed(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True


set_seed()
ds = torchvision.datasets.CIFAR10("data", download=True, transform=T.ToTensor())
dl = torch.utils.data.DataLoader(ds, batch_size=128, shuffle=True, num_workers=4)
net = torchvision.models.vgg11_bn(num_classes=10).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
crit = nn.CrossEntropyLoss()

for epoch in range(3):
    net.train()
    for img, lab in dl:
        img, lab = img.cuda(), lab.cuda()
        opt.zero_grad()
        loss = crit(net(img), lab)
        loss.backward()
        opt.step()
    print(epoch, loss.item())

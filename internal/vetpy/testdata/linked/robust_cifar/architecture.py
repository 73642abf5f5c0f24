import torch
import torch.nn as nn
import torch.nn.functional as F

CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.2471, 0.2435, 0.2616)


class PreActBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(cin)
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.short = None
        if stride != 1 or cin != cout:
            self.short = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        y = F.silu(self.bn1(x))
        s = x if self.short is None else self.short(y)
        y = self.conv1(y)
        return s + self.conv2(F.silu(self.bn2(y)))


class PreActResNet(nn.Module):
    """Normalises the input itself so that attacks can work in [0, 1]."""

    def __init__(self, n_classes=10, widths=(64, 128, 256, 512), depth=2):
        super().__init__()
        self.register_buffer("mean", torch.tensor(CIFAR10_MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(CIFAR10_STD).view(1, 3, 1, 1))
        layers, cin = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)], widths[0]
        for i, w in enumerate(widths):
            for j in range(depth):
                layers.append(PreActBlock(cin, w, 2 if i > 0 and j == 0 else 1))
                cin = w
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(cin), nn.SiLU())
        self.fc = nn.Linear(cin, n_classes)

    def forward(self, x):
        mean = self.mean.cuda()  # want: V15
        std = self.std.cuda()  # want: V15
        h = self.features((x - mean) / std)
        return self.fc(h.mean(dim=(2, 3)))

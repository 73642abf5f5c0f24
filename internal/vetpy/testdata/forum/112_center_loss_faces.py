import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class CenterLoss(nn.Module):
    def __init__(self, num_classes, feat_dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, feats, labels):
        return (feats - self.centers[labels]).pow(2).sum(1).mean()


class EmbedNet(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 3, 2, 1), nn.PReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.PReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 64))
        self.head = nn.Linear(64, n)

    def forward(self, x):
        f = self.body(x)
        return f, self.head(f)


def main():
    device = torch.device("cuda")
    ds = datasets.ImageFolder("faces/train", transforms.Compose(
        [transforms.Grayscale(), transforms.Resize((96, 96)), transforms.ToTensor()]))
    loader = DataLoader(ds, batch_size=128, shuffle=True, num_workers=8, pin_memory=True)
    net = EmbedNet(len(ds.classes)).to(device)
    criterion_cent = CenterLoss(len(ds.classes), 64).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    alpha = 0.003

    for epoch in range(60):
        net.train()
        for x, y in loader:
            x = x.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            feats, logits = net(x)
            loss = F.cross_entropy(logits, y) + alpha * criterion_cent(feats, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()

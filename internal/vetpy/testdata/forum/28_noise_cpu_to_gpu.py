import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import datasets, transforms

device = torch.device("cuda")


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.mu = nn.Linear(400, 20)
        self.lv = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.mu(h), self.lv(h)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))


model = VAE().to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(
    datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor()),
    batch_size=128, shuffle=True, num_workers=1)

for epoch in range(10):
    for x, _ in loader:
        x = x.view(-1, 784).to(device)
        mu, lv = model.encode(x)
        eps = torch.randn(mu.size(0), 20).to(device)
        z = mu + eps * torch.exp(0.5 * lv)
        rec = model.decode(z)
        bce = F.binary_cross_entropy(rec, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        loss = bce + kld
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("epoch", epoch, loss.item() / len(x))

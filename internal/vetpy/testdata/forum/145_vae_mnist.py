import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class VAE(nn.Module):
    def __init__(self, z=20):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, z)
        self.fc22 = nn.Linear(400, z)
        self.fc3 = nn.Linear(z, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


device = torch.device("cuda")
train_loader = DataLoader(datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor()),
                          batch_size=128, shuffle=True, num_workers=2, pin_memory=True)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
history = {"recon": [], "kld": []}

for epoch in range(1, 21):
    model.train()
    for data, _ in train_loader:
        data = data.to(device, non_blocking=True)
        recon, mu, logvar = model(data)
        bce = F.binary_cross_entropy(recon, data.view(-1, 784), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        history["recon"].append(bce)
        history["kld"].append(kld)
        loss = bce + kld
        loss.backward()
        optimizer.step()
    print("epoch", epoch, loss.item() / len(data))
torch.save(history, "history.pt")

"""Learns to draw digits (Kingma & Welling, 2014).

It fetches MNIST; the figure in main.go is of the digits that are drawn there, as files of MNIST's form.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor
from torchvision.utils import save_image

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
train = Subset(MNIST("mnist", train=True, download=True, transform=ToTensor()), range(10_000))
test = Subset(MNIST("mnist", train=False, download=True, transform=ToTensor()), range(1_000))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))
        self.decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))

    def forward(self, x):
        mean, logvar = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(z), mean, logvar


def loss_of(x):
    logits, mean, logvar = model(x)
    drawn = nn.functional.binary_cross_entropy_with_logits(logits, x.flatten(1), reduction="sum")
    prior = 0.5 * (mean.square() + logvar.exp() - logvar - 1).sum()
    return (drawn + prior) / len(x)


model = VAE().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for x, _ in DataLoader(train, batch_size=64, shuffle=True):
        opt.zero_grad()
        loss_of(x.to(device)).backward()
        opt.step()

model.eval()
with torch.no_grad():
    total = sum(loss_of(x.to(device)).item() * len(x) for x, _ in DataLoader(test, batch_size=64))
    print(f"loss {total / len(test):.1f} on what is held out")
    samples = model.decoder(torch.randn(8, 16, device=device)).sigmoid()
    save_image(samples.view(8, 1, 28, 28), "vae.png", nrow=1, padding=0)

import os
import torch
import torch.nn as nn
import torchvision.utils as vutils
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

nz, ngf, ndf, nc = 100, 64, 64, 1
device = torch.device("cuda")


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 7, 1, 0, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, True),
            nn.Flatten(), nn.Linear(ndf * 2 * 49, 1))

    def forward(self, x):
        return self.main(x).view(-1)


tfm = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
loader = DataLoader(datasets.MNIST("data", download=True, transform=tfm), 128, shuffle=True,
                    num_workers=4, pin_memory=True, drop_last=True)
netG, netD = Generator().to(device), Discriminator().to(device)
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(64, nz, 1, 1, device=device)
os.makedirs("samples", exist_ok=True)

for epoch in range(50):
    for real, _ in loader:
        real = real.to(device, non_blocking=True)
        b = real.size(0)
        valid = torch.ones(b, device=device)
        zeros = torch.zeros(b, device=device)
        z = torch.randn(b, nz, 1, 1).to(device)
        fake = netG(z)

        optD.zero_grad()
        d_loss = bce(netD(real), valid) + bce(netD(fake), zeros)
        d_loss.backward(retain_graph=True)
        optD.step()

        optG.zero_grad()
        g_loss = bce(netD(fake), valid)
        g_loss.backward()
        optG.step()
    with torch.no_grad():
        netG.eval()
        vutils.save_image(netG(fixed), f"samples/{epoch:03d}.png", normalize=True)
        netG.train()
    print(f"{epoch} D {d_loss.item():.3f} G {g_loss.item():.3f}")

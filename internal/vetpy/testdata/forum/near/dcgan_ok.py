import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from dcgan_nets import Discriminator, Generator

device = torch.device("cuda")
nz = 100
tfm = transforms.Compose([transforms.Resize(64), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
loader = DataLoader(datasets.LSUN("lsun", classes=["bedroom_train"], transform=tfm), 128, shuffle=True,
                    num_workers=8, pin_memory=True, drop_last=True)
netG, netD = Generator(nz).to(device), Discriminator().to(device)
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
G_losses, D_losses = [], []

for epoch in range(5):
    for i, (real, _) in enumerate(loader):
        real = real.to(device, non_blocking=True)
        label = torch.ones(real.size(0), device=device)
        netD.zero_grad()
        errD_real = criterion(netD(real).view(-1), label)
        errD_real.backward()
        noise = torch.randn(real.size(0), nz, 1, 1, device=device)
        fake = netG(noise)
        errD_fake = criterion(netD(fake.detach()).view(-1), torch.zeros_like(label))
        errD_fake.backward()
        optD.step()

        netG.zero_grad()
        errG = criterion(netD(fake).view(-1), label)
        errG.backward()
        optG.step()

        G_losses.append(errG.detach())
        D_losses.append((errD_real + errD_fake).detach())
        if i % 50 == 0:
            print(f"[{epoch}][{i}/{len(loader)}] D {D_losses[-1].item():.4f} G {errG.item():.4f}")
torch.save({"G": torch.stack(G_losses).cpu(), "D": torch.stack(D_losses).cpu()}, "curves.pt")

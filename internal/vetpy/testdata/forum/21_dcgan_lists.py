import torch
import torch.nn as nn
import torchvision.datasets as dset
import torchvision.transforms as transforms

from models import Discriminator, Generator

nz = 100
dataset = dset.CelebA("celeba", transform=transforms.Compose([
    transforms.Resize(64), transforms.CenterCrop(64), transforms.ToTensor(),
    transforms.Normalize((0.5,) * 3, (0.5,) * 3)]))
dataloader = torch.utils.data.DataLoader(dataset, batch_size=128, shuffle=True, num_workers=2)
device = torch.device("cuda:0")

netG = Generator(nz).to(device)
netD = Discriminator().to(device)
criterion = nn.BCELoss()
fixed_noise = torch.randn(64, nz, 1, 1, device=device)
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
G_losses = []
D_losses = []

for epoch in range(25):
    for i, data in enumerate(dataloader, 0):
        netD.zero_grad()
        real = data[0].to(device)
        b = real.size(0)
        label = torch.full((b,), 1.0, device=device)
        errD_real = criterion(netD(real).view(-1), label)
        errD_real.backward()
        noise = torch.randn(b, nz, 1, 1, device=device)
        fake = netG(noise)
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()).view(-1), label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()

        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake).view(-1), label)
        errG.backward()
        optimizerG.step()

        G_losses.append(errG)
        D_losses.append(errD)
    print("[%d] D %.3f G %.3f" % (epoch, errD.item(), errG.item()))

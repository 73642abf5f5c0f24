import os
import random

import torch
import torch.nn as nn
import torch.optim as optim
import torchvision.transforms as T
import torchvision.utils as vutils
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

# settings
dataroot = "data/anime"
image_size = 64
batch_size = 128
nz, ngf, ndf = 100, 64, 64
num_epochs = 50
lr = 0.0002
beta1 = 0.5

random.seed(999)
torch.manual_seed(999)
device = torch.device("cuda:0")


def weights_init(m):
    name = m.__class__.__name__
    if "Conv" in name:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


netG = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
    nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh(),
).to(device)
netD = nn.Sequential(
    nn.Conv2d(3, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 4), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf * 4, ndf * 8, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 8), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False), nn.Flatten(0),
).to(device)
netG.apply(weights_init)
netD.apply(weights_init)

tf = T.Compose([T.Resize(image_size), T.CenterCrop(image_size), T.ToTensor(),
                T.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))])
loader = DataLoader(ImageFolder(dataroot, tf), batch_size=batch_size, shuffle=True,
                    num_workers=4, pin_memory=True, drop_last=True)

criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(64, nz, 1, 1, device=device)
optimizerD = optim.Adam(netD.parameters(), lr=lr, betas=(beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=lr, betas=(beta1, 0.999))
os.makedirs("samples", exist_ok=True)

real_label = torch.ones(batch_size, device=device)
fake_label = torch.zeros(batch_size, device=device)

for epoch in range(num_epochs):
    for i, (real, _) in enumerate(loader):
        real = real.to(device, non_blocking=True)

        # (1) update D: maximize log(D(x)) + log(1 - D(G(z)))
        noise = torch.randn(batch_size, nz, 1, 1, device=device)
        fake = netG(noise)
        errD = criterion(netD(real), real_label) + criterion(netD(fake.detach()), fake_label)
        errD.backward()
        optimizerD.step()

        # (2) update G: maximize log(D(G(z)))
        optimizerG.zero_grad()
        errG = criterion(netD(fake), real_label)
        errG.backward()
        optimizerG.step()

        if i % 50 == 0:
            print("[%d/%d][%d/%d] Loss_D: %.4f Loss_G: %.4f"
                  % (epoch, num_epochs, i, len(loader), errD.item(), errG.item()))

    netG.eval()
    with torch.no_grad():
        samples = netG(fixed_noise).cpu()
    netG.train()
    vutils.save_image(samples, "samples/epoch_%03d.png" % epoch, normalize=True)
    torch.save(netG.state_dict(), "netG.pth")

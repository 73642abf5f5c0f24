# DCGAN on celebA 64x64, based on the tutorial. D loss goes to 0 and stays there??
import os
import torch
import torch.nn as nn
import torchvision.datasets as dset
import torchvision.transforms as transforms
import torchvision.utils as vutils

nz, ngf, ndf, nc = 100, 64, 64, 3
bs = 128
device = "cuda"
os.makedirs("out", exist_ok=True)

dataset = dset.ImageFolder(root="data/celeba",
                           transform=transforms.Compose([
                               transforms.Resize(64),
                               transforms.CenterCrop(64),
                               transforms.ToTensor(),
                               transforms.Normalize((0.5,) * 3, (0.5,) * 3),
                           ]))
dataloader = torch.utils.data.DataLoader(dataset, batch_size=bs, shuffle=True, num_workers=6,
                                         pin_memory=True, drop_last=True)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


def up(i, o, s=2, p=1):
    return [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]


def down(i, o):
    return [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, inplace=True)]


netG = nn.Sequential(*up(nz, ngf * 8, 1, 0), *up(ngf * 8, ngf * 4), *up(ngf * 4, ngf * 2), *up(ngf * 2, ngf),
                     nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh()).to(device)
netD = nn.Sequential(nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
                     *down(ndf, ndf * 2), *down(ndf * 2, ndf * 4), *down(ndf * 4, ndf * 8),
                     nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False), nn.Flatten(0)).to(device)
netG.apply(weights_init)
netD.apply(weights_init)

bce = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(64, nz, 1, 1, device=device)
ones = torch.ones(bs, device=device)
zeros = torch.zeros(bs, device=device)
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

for epoch in range(25):
    for i, (real, _) in enumerate(dataloader):
        real = real.to(device, non_blocking=True)

        # (1) update D: real then fake, gradients add up on purpose
        lossD_real = bce(netD(real), ones)
        lossD_real.backward()
        noise = torch.randn(bs, nz, 1, 1, device=device)
        fake = netG(noise)
        lossD_fake = bce(netD(fake.detach()), zeros)
        lossD_fake.backward()
        optD.step()

        # (2) update G
        optG.zero_grad()
        lossG = bce(netD(fake), ones)
        lossG.backward()
        optG.step()

        if i % 100 == 0:
            print("[%d/%d] D %.4f G %.4f" % (epoch, i, (lossD_real + lossD_fake).item(), lossG.item()))

    netG.eval()
    with torch.no_grad():
        vutils.save_image(netG(fixed_noise), "out/fake_%03d.png" % epoch, normalize=True)
    netG.train()

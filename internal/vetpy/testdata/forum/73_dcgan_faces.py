import torch
import torch.nn as nn
import torchvision.datasets as dset
import torchvision.transforms as T
import torchvision.utils as vutils

nz, ngf, ndf, nc = 100, 64, 64, 3
device = "cuda"


def weights_init(m):
    if "Conv" in m.__class__.__name__:
        nn.init.normal_(m.weight.data, 0.0, 0.02)


netG = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
    nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh(),
).to(device)
netD = nn.Sequential(
    nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
    nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, True),
    nn.Conv2d(ndf * 2, 1, 8, 1, 0, bias=False), nn.Flatten(),
).to(device)
netG.apply(weights_init)
netD.apply(weights_init)

dataset = dset.ImageFolder("data/celeba", transform=T.Compose([
    T.Resize(32), T.CenterCrop(32), T.ToTensor(), T.Normalize((0.5,) * 3, (0.5,) * 3)]))
dataloader = torch.utils.data.DataLoader(dataset, batch_size=128, shuffle=True, num_workers=8, pin_memory=True)

criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
fixed_noise = torch.randn(64, nz, 1, 1, device=device)

G_losses, D_losses = [], []
for epoch in range(25):
    for i, (real, _) in enumerate(dataloader):
        real = real.to(device, non_blocking=True)
        b = real.size(0)
        ones = torch.ones(b, 1, device=device)
        zeros = torch.zeros(b, 1, device=device)

        noise = torch.randn(b, nz, 1, 1).to(device)
        fake = netG(noise)

        netD.zero_grad()
        errD = criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)
        errD.backward()
        optimizerD.step()

        netG.zero_grad()
        errG = criterion(netD(fake), ones)
        errG.backward()
        optimizerG.step()

        G_losses.append(errG)
        D_losses.append(errD)

    netG.eval()
    with torch.no_grad():
        vutils.save_image(netG(fixed_noise), "out/%03d.png" % epoch, normalize=True)
    netG.train()

"""SNGAN on cifar. D: two backward passes per step are meant (real and fake), G: one."""
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm as sn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms, utils

dev = torch.device("cuda")
Z = 128


def gen():
    def up(i, o):
        return [nn.ConvTranspose2d(i, o, 4, 2, 1), nn.BatchNorm2d(o), nn.ReLU(True)]
    return nn.Sequential(nn.Linear(Z, 4 * 4 * 256), nn.Unflatten(1, (256, 4, 4)),
                         *up(256, 128), *up(128, 64), *up(64, 64), nn.Conv2d(64, 3, 3, padding=1), nn.Tanh())


def disc():
    mods, c = [], 3
    for o, s in ((64, 1), (64, 2), (128, 1), (128, 2), (256, 1), (256, 2)):
        mods += [sn(nn.Conv2d(c, o, 3 if s == 1 else 4, s, 1)), nn.LeakyReLU(0.1)]
        c = o
    return nn.Sequential(*mods, nn.Flatten(), sn(nn.Linear(256 * 16, 1)))


class GAN:
    def __init__(self):
        self.G, self.D = gen().to(dev), disc().to(dev)
        self.og = torch.optim.Adam(self.G.parameters(), 2e-4, betas=(0.0, 0.9))
        self.od = torch.optim.Adam(self.D.parameters(), 2e-4, betas=(0.0, 0.9))

    def d_step(self, real):
        self.D.zero_grad(set_to_none=True)
        loss_r = torch.relu(1 - self.D(real)).mean()
        loss_r.backward()
        with torch.no_grad():
            fake = self.G(torch.randn(real.size(0), Z, device=dev))
        loss_f = torch.relu(1 + self.D(fake)).mean()
        loss_f.backward()
        self.od.step()
        return (loss_r + loss_f).detach()

    def g_step(self, n):
        self.og.zero_grad(set_to_none=True)
        loss = -self.D(self.G(torch.randn(n, Z, device=dev))).mean()
        loss.backward()
        self.og.step()
        return loss.detach()


def main():
    tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    dl = DataLoader(datasets.CIFAR10("data", transform=tf, download=True), 64, shuffle=True, drop_last=True,
                    num_workers=4, pin_memory=True)
    gan = GAN()
    fixed = torch.randn(64, Z, device=dev)
    it = 0
    for epoch in range(200):
        for real, _ in dl:
            d = gan.d_step(real.to(dev, non_blocking=True))
            if it % 5 == 0:
                g = gan.g_step(64)
            if it % 1000 == 0:
                print(it, f"D {d.item():.3f} G {g.item():.3f}")
            it += 1
        gan.G.eval()
        with torch.no_grad():
            utils.save_image(gan.G(fixed), f"sngan_{epoch}.png", normalize=True)
        gan.G.train()


if __name__ == "__main__":
    main()

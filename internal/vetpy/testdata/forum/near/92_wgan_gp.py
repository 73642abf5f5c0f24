"""WGAN-GP on CelebA crops. D is updated five times per G update, with separate backward calls
for the real, the fake and the penalty term (they are meant to add up)."""
import argparse

import torch
import torch.optim as optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms, utils

from dcgan_nets import Critic, Generator


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    inter = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = critic(inter)
    grad, = torch.autograd.grad(score.sum(), inter, create_graph=True)
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def infinite(loader):
    while True:
        for x, _ in loader:
            yield x


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=100000)
    ap.add_argument("--n-critic", type=int, default=5)
    ap.add_argument("--lam", type=float, default=10.0)
    args = ap.parse_args()
    device = torch.device("cuda")

    tf = transforms.Compose([transforms.CenterCrop(140), transforms.Resize(64), transforms.ToTensor(),
                             transforms.Normalize([0.5] * 3, [0.5] * 3)])
    data = infinite(DataLoader(datasets.ImageFolder("celeba", tf), batch_size=64, shuffle=True,
                               num_workers=8, pin_memory=True, drop_last=True))
    netG, netD = Generator(128).to(device), Critic().to(device)
    optG = optim.Adam(netG.parameters(), lr=1e-4, betas=(0.0, 0.9))
    optD = optim.Adam(netD.parameters(), lr=1e-4, betas=(0.0, 0.9))
    fixed = torch.randn(64, 128, device=device)

    for it in range(args.iters):
        for p in netD.parameters():
            p.requires_grad_(True)
        for _ in range(args.n_critic):
            real = next(data).to(device, non_blocking=True)
            with torch.no_grad():
                fake = netG(torch.randn(real.size(0), 128, device=device))
            netD.zero_grad()
            d_real = -netD(real).mean()
            d_real.backward()
            d_fake = netD(fake).mean()
            d_fake.backward()
            gp = args.lam * gradient_penalty(netD, real, fake)
            gp.backward()
            optD.step()

        for p in netD.parameters():
            p.requires_grad_(False)
        netG.zero_grad()
        g_loss = -netD(netG(torch.randn(64, 128, device=device))).mean()
        g_loss.backward()
        optG.step()

        if it % 500 == 0:
            print(f"{it}: W {-(d_real + d_fake).item():.3f} GP {gp.item():.3f} G {g_loss.item():.3f}")
            netG.eval()
            with torch.no_grad():
                utils.save_image(netG(fixed), f"wgan_{it:06d}.png", normalize=True)
            netG.train()


if __name__ == "__main__":
    main()

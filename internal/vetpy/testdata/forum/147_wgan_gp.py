import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from nets import Critic, Generator


class WGAN:
    def __init__(self, zdim=128, lam=10.0, n_critic=5, lr=1e-4):
        self.device = torch.device("cuda")
        self.zdim, self.lam, self.n_critic = zdim, lam, n_critic
        self.G = Generator(zdim).to(self.device)
        self.D = Critic().to(self.device)
        self.g_opt = torch.optim.Adam(self.G.parameters(), lr=lr, betas=(0.0, 0.9))
        self.d_opt = torch.optim.Adam(self.D.parameters(), lr=lr, betas=(0.0, 0.9))
        self.log = {"D": [], "G": [], "GP": []}

    def gradient_penalty(self, real, fake):
        eps = torch.rand(real.size(0), 1, 1, 1, device=self.device)
        x = (eps * real + (1 - eps) * fake).requires_grad_(True)
        out = self.D(x)
        grad = torch.autograd.grad(out.sum(), x, create_graph=True)[0]
        return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()

    def critic_step(self, real):
        z = torch.randn(real.size(0), self.zdim, device=self.device)
        with torch.no_grad():
            fake = self.G(z)
        gp = self.gradient_penalty(real, fake)
        loss = self.D(fake).mean() - self.D(real).mean() + self.lam * gp
        self.d_opt.zero_grad()
        loss.backward()
        self.d_opt.step()
        self.log["GP"].append(gp)
        self.log["D"].append(loss.item())

    def generator_step(self, n):
        z = torch.randn(n, self.zdim, device=self.device)
        loss = -self.D(self.G(z)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        self.log["G"].append(loss.detach())

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for i, (real, _) in enumerate(loader):
                real = real.to(self.device, non_blocking=True)
                self.critic_step(real)
                if i % self.n_critic == 0:
                    self.generator_step(real.size(0))
            print(epoch, self.log["D"][-1], self.log["G"][-1].item())


if __name__ == "__main__":
    tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    dl = DataLoader(datasets.CIFAR10("data", download=True, transform=tf), 64, shuffle=True, num_workers=4,
                    pin_memory=True, drop_last=True)
    WGAN().train(dl, 100)

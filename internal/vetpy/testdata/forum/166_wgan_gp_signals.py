import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.utils.data import DataLoader

from ecg_windows import ECGWindows  # (1, 512) float tensors, memory mapped

# ---------------------------------------------------------------- settings
LATENT = 64
LAMBDA = 10.0
N_CRITIC = 5
dev = torch.device("cuda:1")


class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(LATENT, 256 * 8)
        layers, c = [], 256
        for _ in range(5):
            layers += [nn.Upsample(scale_factor=2), nn.Conv1d(c, c // 2, 9, padding=4), nn.LeakyReLU(0.2)]
            c //= 2
        self.body = nn.Sequential(*layers, nn.Upsample(scale_factor=2), nn.Conv1d(c, 1, 9, padding=4), nn.Tanh())

    def forward(self, z):
        return self.body(self.fc(z).view(-1, 256, 8))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        layers, c = [], 1
        for o in (32, 64, 128, 256):
            layers += [nn.Conv1d(c, o, 9, stride=2, padding=4), nn.LeakyReLU(0.2)]
            c = o
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Linear(256 * 32, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, 1, device=real.device)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    g, = autograd.grad(critic(mix).sum(), mix, create_graph=True)
    return ((g.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def endless(loader):
    while True:
        yield from loader


def build():
    G, C = Gen().to(dev), Critic().to(dev)
    optC = torch.optim.Adam(C.parameters(), lr=1e-4, betas=(0.0, 0.9))
    optG = torch.optim.Adam(C.parameters(), lr=1e-4, betas=(0.0, 0.9))
    return G, C, optG, optC


def main(steps=100_000):
    loader = DataLoader(ECGWindows("mitbih.mmap"), batch_size=64, shuffle=True, drop_last=True,
                        num_workers=4, pin_memory=True)
    data = endless(loader)
    G, C, optG, optC = build()
    for step in range(steps):
        for _ in range(N_CRITIC):
            real = next(data).to(dev, non_blocking=True)
            with torch.no_grad():
                fake = G(torch.randn(real.size(0), LATENT, device=dev))
            lossC = C(fake).mean() - C(real).mean() + LAMBDA * gradient_penalty(C, real, fake)
            optC.zero_grad(set_to_none=True)
            lossC.backward()
            optC.step()

        for p in C.parameters():
            p.requires_grad_(False)
        lossG = -C(G(torch.randn(64, LATENT, device=dev))).mean()
        optG.zero_grad(set_to_none=True)
        lossG.backward()
        optG.step()
        for p in C.parameters():
            p.requires_grad_(True)

        if step % 500 == 0:
            print(f"{step:6d}  W {-lossC.item():.3f}  G {lossG.item():.3f}")
            torch.save(G.state_dict(), "gen.pt")


if __name__ == "__main__":
    main()

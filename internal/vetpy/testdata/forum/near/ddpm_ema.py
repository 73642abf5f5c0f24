import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from unet_diffusion import UNet

T_STEPS = 1000
device = torch.device("cuda")


class EMA:
    def __init__(self, model, decay=0.9999):
        self.model = copy.deepcopy(model).eval()
        for p in self.model.parameters():
            p.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, src):
        for e, p in zip(self.model.parameters(), src.parameters()):
            e.lerp_(p, 1 - self.decay)
        for e, b in zip(self.model.buffers(), src.buffers()):
            e.copy_(b)


betas = torch.linspace(1e-4, 0.02, T_STEPS, device=device)
alphas = 1 - betas
abar = torch.cumprod(alphas, 0)


@torch.no_grad()
def sample(net, n):
    x = torch.randn(n, 3, 32, 32, device=device)
    for t in reversed(range(T_STEPS)):
        tt = torch.full((n,), t, device=device, dtype=torch.long)
        eps = net(x, tt)
        x = (x - betas[t] / (1 - abar[t]).sqrt() * eps) / alphas[t].sqrt()
        if t > 0:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x.clamp(-1, 1)


def main():
    tf = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
    loader = DataLoader(datasets.CIFAR10("data", True, tf, download=True), batch_size=128, shuffle=True, drop_last=True,
                        num_workers=6, pin_memory=True)
    net = UNet().to(device)
    ema = EMA(net)
    opt = torch.optim.Adam(net.parameters(), lr=2e-4)
    step = 0
    for epoch in range(500):
        net.train()
        for x, _ in loader:
            x = x.to(device, non_blocking=True)
            t = torch.randint(T_STEPS, (x.size(0),), device=device)
            noise = torch.randn_like(x)
            a = abar[t].view(-1, 1, 1, 1)
            loss = F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            ema.update(net)
            step += 1
            if step % 500 == 0:
                print(step, loss.item())
        if epoch % 25 == 0:
            torch.save(sample(ema.model, 64).cpu(), f"samples/{epoch:03d}.pt")


if __name__ == "__main__":
    main()

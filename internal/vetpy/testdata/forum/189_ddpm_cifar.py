import argparse
import copy
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from unet import UNet

logger = logging.getLogger("ddpm")


class GaussianDiffusion(nn.Module):
    def __init__(self, T=1000):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, T)
        alpha_bar = torch.cumprod(1.0 - betas, dim=0)
        self.T = T
        self.register_buffer("sqrt_ab", alpha_bar.sqrt())
        self.register_buffer("sqrt_1mab", (1 - alpha_bar).sqrt())

    def q_sample(self, x0, t, noise):
        return (self.sqrt_ab[t].view(-1, 1, 1, 1) * x0
                + self.sqrt_1mab[t].view(-1, 1, 1, 1) * noise)

    def loss(self, model, x0):
        t = torch.randint(0, self.T, (x0.size(0),), device=x0.device)
        noise = torch.randn_like(x0)
        pred = model(self.q_sample(x0, t, noise), t)
        return F.mse_loss(pred, noise)


@torch.no_grad()
def ema_update(ema, model, decay=0.9999):
    for pe, p in zip(ema.parameters(), model.parameters()):
        pe.mul_(decay).add_(p, alpha=1 - decay)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=500)
    ap.add_argument("--bs", type=int, default=128)
    ap.add_argument("--verbose", action="store_true")
    args = ap.parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.INFO)

    device = torch.device("cuda")
    tfm = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                              transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    ds = datasets.CIFAR10("data", train=True, download=True, transform=tfm)
    loader = DataLoader(ds, batch_size=args.bs, shuffle=True, num_workers=4, drop_last=True)

    model = UNet(ch=128, ch_mult=(1, 2, 2, 2), dropout=0.1).to(device)
    ema = copy.deepcopy(model).eval()
    diffusion = GaussianDiffusion().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=2e-4)

    model.train()
    step = 0
    for epoch in range(args.epochs):
        for x, _ in loader:
            x = x.pin_memory().to(device)
            loss = diffusion.loss(model, x)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            ema_update(ema, model)
            logger.debug(f"step {step} loss {loss.item():.4f}")
            step += 1
        logger.info("epoch %d done, %d steps", epoch, step)
        if epoch % 50 == 0:
            torch.save({"model": model.state_dict(), "ema": ema.state_dict()}, "ddpm.pt")


if __name__ == "__main__":
    main()

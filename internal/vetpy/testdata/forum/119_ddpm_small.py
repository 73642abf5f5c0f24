import copy

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from unet import UNet


class Diffusion:
    def __init__(self, T=1000):
        self.T = T
        self.betas = torch.linspace(1e-4, 0.02, T)
        self.alphas_bar = torch.cumprod(1 - self.betas, 0)

    def q_sample(self, x0, t, noise):
        ab = self.alphas_bar.to(x0.device)[t].view(-1, 1, 1, 1)
        return ab.sqrt() * x0 + (1 - ab).sqrt() * noise


def ema_update(ema, model, decay=0.9999):
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()):
            e.lerp_(p, 1 - decay)


def main():
    device = torch.device("cuda")
    tf = transforms.Compose([transforms.Resize(64), transforms.CenterCrop(64), transforms.RandomHorizontalFlip(),
                             transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    loader = DataLoader(datasets.ImageFolder("celeba", tf), batch_size=64, shuffle=True, num_workers=8,
                        pin_memory=True, drop_last=True)
    model = UNet(ch=128).to(device)
    ema = copy.deepcopy(model)
    diff = Diffusion()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    step = 0
    for epoch in range(100):
        for x, _ in loader:
            x = x.to(device, non_blocking=True)
            t = torch.randint(0, diff.T, (x.size(0),), device=device)
            noise = torch.randn_like(x)
            pred = model(diff.q_sample(x, t, noise), t)
            loss = F.mse_loss(pred, noise)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            ema_update(ema, model)
            step += 1
            print(f"step {step} loss {loss}")
        torch.save({"ema": ema.state_dict(), "step": step}, "ddpm.pt")


if __name__ == "__main__":
    main()

from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from vae_nets import ConvVAE

device = torch.device("cuda")
tf = transforms.Compose([transforms.CenterCrop(148), transforms.Resize(64), transforms.ToTensor()])
dl = DataLoader(datasets.CelebA("data", transform=tf), 144, shuffle=True, num_workers=8, pin_memory=True)
model = ConvVAE(latent=128).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
fixed_z = torch.randn(64, 128, device=device)


def losses(x):
    recon, mu, logvar = model(x)
    out = {"recon": F.mse_loss(recon, x), "kld": -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()}
    out["total"] = out["recon"] + 2.5e-4 * out["kld"]
    return out


for epoch in range(50):
    model.train()
    meters = defaultdict(lambda: torch.zeros((), device=device))
    for x, _ in dl:
        x = x.to(device, non_blocking=True)
        l = losses(x)
        opt.zero_grad(set_to_none=True)
        l["total"].backward()
        opt.step()
        for k, v in l.items():
            meters[k] += v.detach()
    print(epoch, {k: round(v.item() / len(dl), 5) for k, v in meters.items()})
    model.eval()
    with torch.no_grad():
        samples = model.decode(fixed_z).cpu()
    torch.save(samples, f"samples_{epoch}.pt")

import numpy as np
import torch

from nerf import MLP, rays_of

device = "cuda"
images = np.load("lego.npz")["images"]
poses = np.load("lego.npz")["poses"]
mlp = MLP().to(device)
opt = torch.optim.Adam(mlp.parameters(), lr=5e-4)
background = torch.ones(3)
near = torch.linspace(2.0, 6.0, 64)

for it in range(200000):
    k = np.random.randint(len(images))
    o, d = rays_of(poses[k], 1024)
    o, d = torch.from_numpy(o).to(device), torch.from_numpy(d).to(device)
    z = near.to(device) + torch.rand(1024, 64).to(device) / 16
    rgb, sigma = mlp(o[:, None] + d[:, None] * z[..., None], d)
    alpha = 1 - torch.exp(-sigma * 0.06)
    w = alpha * torch.cumprod(1 - alpha + 1e-10, 1)
    c = (w[..., None] * rgb).sum(1) + (1 - w.sum(1, keepdim=True)) * background.to(device)
    loss = (c - torch.from_numpy(images[k]).to(device).view(-1, 3)[:1024]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 500 == 0:
        print(it, loss.item())

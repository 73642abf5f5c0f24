import argparse

import numpy as np
import torch
import torch.nn as nn


def mlp(i, o, h=256):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


def gradient_penalty(critic, real, fake):
    a = torch.rand(real.size(0), 1, device=real.device)
    x = (a * real + (1 - a) * fake).requires_grad_(True)
    out = critic(x)
    g, = torch.autograd.grad(out.sum(), x, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--file", default="credit.npy")
    ap.add_argument("--iters", type=int, default=30000)
    ap.add_argument("--bs", type=int, default=512)
    args = ap.parse_args()
    device = torch.device("cuda")
    table = torch.from_numpy(np.load(args.file)).float().to(device)
    d, z = table.size(1), 64
    gen, critic = mlp(z, d).to(device), mlp(d, 1).to(device)
    g_opt = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0, 0.9))
    c_opt = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0, 0.9))

    for it in range(args.iters):
        for _ in range(5):
            real = table[torch.randint(len(table), (args.bs,), device=device)]
            fake = gen(torch.randn(args.bs, z, device=device)).detach()
            c_loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
            c_opt.zero_grad(set_to_none=True)
            c_loss.backward()
            c_opt.step()

        g_loss = -critic(gen(torch.randn(args.bs, z, device=device))).mean()
        g_opt.zero_grad(set_to_none=True)
        g_loss.backward()
        g_opt.step()
        if it % 1000 == 0:
            print(f"{it} critic {c_loss.item():.4f} gen {g_loss.item():.4f}")

    gen.eval()
    with torch.no_grad():
        out = gen(torch.randn(10000, z, device=device))
    np.save("synthetic.npy", out.cpu().numpy())


if __name__ == "__main__":
    main()

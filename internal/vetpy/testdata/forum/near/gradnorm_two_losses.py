import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from pinn import BurgersPoints, MLP

device = torch.device("cuda")
net = MLP(2, 1, width=64, depth=6).to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
points = DataLoader(BurgersPoints(20000), batch_size=1024, shuffle=True, pin_memory=True, num_workers=2)
x_b, t_b, u_b = (v.to(device) for v in BurgersPoints.boundary(512))
lam = torch.ones((), device=device)


def residual(x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = net(torch.cat([x, t], 1))
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    return u_t + u * u_x - 0.01 / torch.pi * u_xx


def grad_max(loss):
    grads = torch.autograd.grad(loss, [p for p in net.parameters()], retain_graph=True, allow_unused=True)
    return torch.stack([g.abs().max() for g in grads if g is not None]).max()


for epoch in range(200):
    net.train()
    for i, (x, t) in enumerate(points):
        x = x.to(device, non_blocking=True)
        t = t.to(device, non_blocking=True)
        loss_r = residual(x, t).pow(2).mean()
        loss_b = F.mse_loss(net(torch.cat([x_b, t_b], 1)), u_b)
        if i % 10 == 0:
            lam = 0.9 * lam + 0.1 * (grad_max(loss_r) / (grad_max(loss_b) + 1e-8)).detach()
        loss = loss_r + lam * loss_b
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 10 == 0:
        print(epoch, loss_r.item(), loss_b.item())

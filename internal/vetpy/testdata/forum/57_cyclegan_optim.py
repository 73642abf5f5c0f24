import itertools

import torch
from torch import nn

from blocks import unpaired


class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 7, padding=3), nn.ReLU(), nn.Conv2d(64, 3, 7, padding=3), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 4, 2), nn.LeakyReLU(0.2), nn.Conv2d(64, 1, 4))

    def forward(self, x):
        return self.net(x)


G_ab, G_ba = Gen().cuda(), Gen().cuda()
D_a, D_b = Disc().cuda(), Disc().cuda()
opt_g = torch.optim.Adam(G_ab.parameters(), 2e-4, (0.5, 0.999))
opt_d = torch.optim.Adam(itertools.chain(D_a.parameters(), D_b.parameters()), 2e-4, (0.5, 0.999))
mse, l1 = nn.MSELoss(), nn.L1Loss()

for step, (a, b) in enumerate(unpaired(size=256)):
    a, b = a.cuda(), b.cuda()
    fb, fa = G_ab(a), G_ba(b)
    pa, pb = D_a(fa), D_b(fb)
    loss_g = mse(pa, torch.ones_like(pa)) + mse(pb, torch.ones_like(pb)) + 10 * (l1(G_ba(fb), a) + l1(G_ab(fa), b))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    ra, rb, qa, qb = D_a(a), D_b(b), D_a(fa.detach()), D_b(fb.detach())
    loss_d = mse(ra, torch.ones_like(ra)) + mse(qa, torch.zeros_like(qa)) + mse(rb, torch.ones_like(rb)) + mse(qb, torch.zeros_like(qb))
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    if step % 100 == 0:
        print(step, loss_g.item(), loss_d.item())

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from datasets_unpaired import UnpairedDataset
from networks import PatchGAN, ResnetGenerator

parser = argparse.ArgumentParser()
parser.add_argument("--root", default="datasets/horse2zebra")
parser.add_argument("--n_epochs", type=int, default=200)
parser.add_argument("--lr", type=float, default=2e-4)
parser.add_argument("--lambda_cyc", type=float, default=10.0)
opt = parser.parse_args()

device = torch.device("cuda")
G_AB, G_BA = ResnetGenerator(3, 3).to(device), ResnetGenerator(3, 3).to(device)
D_A, D_B = PatchGAN(3).to(device), PatchGAN(3).to(device)
mse, l1 = nn.MSELoss(), nn.L1Loss()
optimizer_G = torch.optim.Adam(G_AB.parameters(), lr=opt.lr, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(list(D_A.parameters()) + list(D_B.parameters()), lr=opt.lr, betas=(0.5, 0.999))
loader = DataLoader(UnpairedDataset(opt.root), batch_size=1, shuffle=True, num_workers=4, pin_memory=True)


def gan_loss(pred, is_real):
    target = torch.ones_like(pred) if is_real else torch.zeros_like(pred)
    return mse(pred, target)


for epoch in range(opt.n_epochs):
    for batch in loader:
        real_A = batch["A"].to(device, non_blocking=True)
        real_B = batch["B"].to(device, non_blocking=True)
        fake_B, fake_A = G_AB(real_A), G_BA(real_B)
        loss_gan = gan_loss(D_B(fake_B), True) + gan_loss(D_A(fake_A), True)
        loss_cyc = l1(G_BA(fake_B), real_A) + l1(G_AB(fake_A), real_B)
        loss_G = loss_gan + opt.lambda_cyc * loss_cyc
        optimizer_G.zero_grad()
        loss_G.backward()
        optimizer_G.step()

        loss_D = 0.5 * (gan_loss(D_A(real_A), True) + gan_loss(D_A(fake_A.detach()), False)
                        + gan_loss(D_B(real_B), True) + gan_loss(D_B(fake_B.detach()), False))
        optimizer_D.zero_grad()
        loss_D.backward()
        optimizer_D.step()
    print(f"[{epoch}/{opt.n_epochs}] G {loss_G.item():.4f} D {loss_D.item():.4f}")
    torch.save({"G_AB": G_AB.state_dict(), "G_BA": G_BA.state_dict()}, "cyclegan.pth")

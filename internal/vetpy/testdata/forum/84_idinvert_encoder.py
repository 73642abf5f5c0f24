import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from datasets import FFHQ
from models.helper import build_discriminator, build_encoder, build_generator
from models.perceptual import PerceptualModel


def training_loop(config, dataset_args, E_lr, D_lr, max_epoch=100, batch_size=8):
    E = build_encoder(config).cuda()
    G = build_generator(config).cuda().eval()
    D = build_discriminator(config).cuda()
    F_vgg = PerceptualModel(min_val=-1, max_val=1).cuda().eval()
    for net in (G, F_vgg):
        for p in net.parameters():
            p.requires_grad_(False)

    optimizer_E = torch.optim.Adam(E.parameters(), lr=E_lr, betas=(0.9, 0.99))
    optimizer_D = torch.optim.Adam(D.parameters(), lr=D_lr, betas=(0.9, 0.99))
    lr_E = torch.optim.lr_scheduler.ExponentialLR(optimizer_E, gamma=0.9)
    lr_D = torch.optim.lr_scheduler.ExponentialLR(optimizer_D, gamma=0.9)
    loader = DataLoader(FFHQ(dataset_args), batch_size=batch_size, shuffle=True, drop_last=True,
                        num_workers=8, pin_memory=True)
    E.train()
    D.train()
    it = 0
    for epoch in range(max_epoch):
        for x_real in loader:
            x_real = x_real.cuda(non_blocking=True)
            w = E(x_real)
            x_rec = G.synthesis(w)
            feat_loss = F.mse_loss(F_vgg(x_rec), F_vgg(x_real))
            adv = F.softplus(-D(x_rec)).mean()
            loss_E = F.mse_loss(x_rec, x_real) + 5e-5 * feat_loss + 0.1 * adv
            optimizer_E.zero_grad()
            loss_E.backward()
            optimizer_E.step()

            with torch.no_grad():
                x_rec = G.synthesis(E(x_real))
            loss_D = F.softplus(D(x_rec)).mean() + F.softplus(-D(x_real)).mean()
            loss_D.backward()
            optimizer_D.step()

            it += 1
            if it % 500 == 0:
                print(f"[{epoch}] it {it} E {loss_E.item():.4f} D {loss_D.item():.4f}")
                torch.save(E.state_dict(), os.path.join(config.out, "E_%06d.pth" % it))
        lr_E.step()
        lr_D.step()


if __name__ == "__main__":
    from config import cfg, data_cfg
    training_loop(cfg, data_cfg, E_lr=1e-4, D_lr=1e-4)

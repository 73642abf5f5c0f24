import os
import sys

import torch
from torch.nn import functional as F

from rvc.models import MultiPeriodDiscriminator, SynthesizerTrn
from rvc.data import get_train_loader
from rvc.losses import discriminator_loss, feature_loss, generator_loss, kl_loss
from rvc.mel import mel_spectrogram_torch


class HP:
    lr = 1e-4
    betas = (0.8, 0.99)
    eps = 1e-9
    c_mel = 45
    epochs = 200
    log_interval = 200


def run(hps, exp_dir):
    device = torch.device("cuda", 0)
    train_loader = get_train_loader(exp_dir, batch_size=8, num_workers=4, pin_memory=True)
    net_g = SynthesizerTrn(hps).to(device)
    net_d = MultiPeriodDiscriminator().to(device)
    optim_g = torch.optim.AdamW(net_g.parameters(), hps.lr, betas=hps.betas, eps=hps.eps)
    optim_d = torch.optim.AdamW(net_d.parameters(), hps.lr, betas=hps.betas, eps=hps.eps)
    scaler = torch.amp.GradScaler("cuda")

    for epoch in range(hps.epochs):
        train_epoch(epoch, hps, (net_g, net_d), (optim_g, optim_d), scaler, train_loader, device)
        torch.save({"g": net_g.state_dict(), "d": net_d.state_dict()}, os.path.join(exp_dir, "last.pth"))


def train_epoch(epoch, hps, nets, optims, scaler, loader, device):
    net_g, net_d = nets
    optim_g, optim_d = optims
    net_g.train()
    net_d.train()
    for step, (phone, pitch, spec, wave) in enumerate(loader):
        phone = phone.to(device, non_blocking=True)
        pitch = pitch.to(device, non_blocking=True)
        spec = spec.to(device, non_blocking=True)
        wave = wave.to(device, non_blocking=True)

        with torch.autocast("cuda", dtype=torch.float16):
            y_hat, z_stats, mask = net_g(phone, pitch, spec)
            d_real, d_fake, _, _ = net_d(wave, y_hat.detach())
            loss_disc = discriminator_loss(d_real, d_fake)
        optim_d.zero_grad()
        scaler.scale(loss_disc).backward()
        optim_d.step()

        with torch.autocast("cuda", dtype=torch.float16):
            d_real, d_fake, f_real, f_fake = net_d(wave, y_hat)
            loss_mel = F.l1_loss(mel_spectrogram_torch(wave), mel_spectrogram_torch(y_hat)) * hps.c_mel
            loss_gen_all = generator_loss(d_fake) + feature_loss(f_real, f_fake) + loss_mel + kl_loss(z_stats, mask)
        optim_g.zero_grad()
        scaler.scale(loss_gen_all).backward()
        scaler.step(optim_g)
        scaler.update()

        if step % hps.log_interval == 0:
            print(f"epoch {epoch} step {step} d {loss_disc.item():.3f} g {loss_gen_all.item():.3f}")


if __name__ == "__main__":
    run(HP(), sys.argv[1])

import torch
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader

from data_utils import MelSet, mel_collate
from models import MultiDiscriminator, Synthesizer

with open("config/base.yml") as fh:
    hps = yaml.safe_load(fh)

device = torch.device("cuda:0")
train_set = MelSet(hps["train_files"])
loader = DataLoader(train_set, batch_size=hps["batch_size"], shuffle=True, num_workers=6, pin_memory=True,
                    collate_fn=mel_collate, persistent_workers=True)
net_g = Synthesizer(hps["n_mels"]).to(device)
net_d = MultiDiscriminator().to(device)
optim_g = torch.optim.AdamW(net_g.parameters(), hps["lr"], betas=(0.8, 0.99))
optim_d = torch.optim.AdamW(net_d.parameters(), hps["lr"], betas=(0.8, 0.99))
scaler = torch.amp.GradScaler("cuda")
l1 = nn.L1Loss()

for epoch in range(hps["epochs"]):
    net_g.train()
    net_d.train()
    for step, (mel, wav) in enumerate(loader):
        mel = mel.to(device, non_blocking=True)
        wav = wav.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            wav_hat = net_g(mel)
            d_real, d_fake = net_d(wav), net_d(wav_hat.detach())
            loss_d = ((1 - d_real) ** 2).mean() + (d_fake ** 2).mean()
        optim_d.zero_grad()
        scaler.scale(loss_d).backward()
        optim_d.step()

        with torch.autocast("cuda", dtype=torch.float16):
            d_fake = net_d(wav_hat)
            loss_g = ((1 - d_fake) ** 2).mean() + 45 * l1(wav_hat, wav)
        optim_g.zero_grad()
        scaler.scale(loss_g).backward()
        optim_g.step()
        scaler.update()
        if step % hps["log_interval"] == 0:
            print(epoch, step, loss_d.item(), loss_g.item())
    torch.save({"g": net_g.state_dict(), "d": net_d.state_dict()}, f"logs/{epoch}.pth")

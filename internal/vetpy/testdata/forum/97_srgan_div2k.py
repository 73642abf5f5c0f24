import argparse
import os

import torch
import torch.optim as optim
from torch.utils.data import DataLoader

from data_utils import TrainDatasetFromFolder
from loss import GeneratorLoss
from model import Discriminator, Generator

parser = argparse.ArgumentParser(description="Train Super Resolution Models")
parser.add_argument("--crop_size", default=88, type=int)
parser.add_argument("--upscale_factor", default=4, type=int, choices=[2, 4, 8])
parser.add_argument("--num_epochs", default=100, type=int)

if __name__ == "__main__":
    opt = parser.parse_args()
    NUM_EPOCHS = opt.num_epochs
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set = TrainDatasetFromFolder("data/DIV2K_train_HR", crop_size=opt.crop_size, upscale_factor=opt.upscale_factor)
    train_loader = DataLoader(dataset=train_set, num_workers=4, batch_size=64, shuffle=True, pin_memory=True)

    netG = Generator(opt.upscale_factor).to(device)
    netD = Discriminator().to(device)
    generator_criterion = GeneratorLoss().to(device)

    optimizerG = optim.Adam(netG.parameters(), lr=1e-3)
    optimizerD = optim.Adam(netD.parameters(), lr=1e-3)
    schedulerG = optim.lr_scheduler.StepLR(optimizerG, step_size=NUM_EPOCHS // 2, gamma=0.1)
    schedulerD = optim.lr_scheduler.StepLR(optimizerD, step_size=NUM_EPOCHS // 2, gamma=0.1)

    for epoch in range(1, NUM_EPOCHS + 1):
        g_total = torch.zeros((), device=device)
        d_total = torch.zeros((), device=device)
        netG.train()
        netD.train()
        for data, target in train_loader:
            real_img = target.to(device, non_blocking=True)
            z = data.to(device, non_blocking=True)

            fake_img = netG(z)
            d_loss = 1 - netD(real_img).mean() + netD(fake_img.detach()).mean()
            optimizerD.zero_grad()
            d_loss.backward()
            optimizerD.step()

            g_loss = generator_criterion(netD(fake_img).mean(), fake_img, real_img)
            optimizerG.zero_grad()
            g_loss.backward()
            optimizerG.step()

            schedulerD.step()
            schedulerG.step()
            g_total += g_loss.detach()
            d_total += d_loss.detach()

        print("[%d/%d] Loss_D: %.4f Loss_G: %.4f" % (epoch, NUM_EPOCHS, d_total.item() / len(train_loader),
                                                   g_total.item() / len(train_loader)))
        os.makedirs("epochs", exist_ok=True)
        torch.save(netG.state_dict(), "epochs/netG_epoch_%d_%d.pth" % (opt.upscale_factor, epoch))

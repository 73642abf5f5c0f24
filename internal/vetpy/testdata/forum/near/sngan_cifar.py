import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.utils import save_image

from sngan import Discriminator, Generator

device = torch.device("cuda")
Z, N_DIS = 128, 5


def infinite(loader):
    while True:
        yield from loader


def main():
    tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
    loader = DataLoader(datasets.CIFAR10("data", True, tf, download=True), batch_size=64, shuffle=True,
                        num_workers=4, pin_memory=True, drop_last=True)
    data = infinite(loader)
    G, D = Generator(Z).to(device), Discriminator().to(device)
    optG = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.0, 0.9))
    optD = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.0, 0.9))
    fixed = torch.randn(64, Z, device=device)
    G.train()
    D.train()

    for it in range(50000):
        for _ in range(N_DIS):
            real = next(data)[0].to(device, non_blocking=True)
            with torch.no_grad():
                fake = G(torch.randn(real.size(0), Z, device=device))
            optD.zero_grad()
            loss_real = F.relu(1 - D(real)).mean()
            loss_real.backward()
            loss_fake = F.relu(1 + D(fake)).mean()
            loss_fake.backward()
            optD.step()

        optG.zero_grad()
        loss_g = -D(G(torch.randn(64, Z, device=device))).mean()
        loss_g.backward()
        optG.step()

        if it % 500 == 0:
            print(it, "D", (loss_real + loss_fake).item(), "G", loss_g.item())
            G.eval()
            with torch.no_grad():
                save_image(G(fixed), "samples/%06d.png" % it, normalize=True)
            G.train()


if __name__ == "__main__":
    main()

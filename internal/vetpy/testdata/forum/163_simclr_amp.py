"""SimCLR on STL10 unlabeled, following sthalles repo but shorter"""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader
from torchvision import transforms as T


class TwoCrops:
    def __init__(self, base):
        self.base = base

    def __call__(self, x):
        return self.base(x), self.base(x)


def simclr_aug(size=96, s=1.0):
    jitter = T.ColorJitter(0.8 * s, 0.8 * s, 0.8 * s, 0.2 * s)
    return T.Compose([
        T.RandomResizedCrop(size), T.RandomHorizontalFlip(), T.RandomApply([jitter], p=0.8),
        T.RandomGrayscale(p=0.2), T.GaussianBlur(9), T.ToTensor()])


class SimCLRNet(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.backbone = torchvision.models.resnet18(num_classes=dim)
        d = self.backbone.fc.in_features
        self.backbone.fc = nn.Sequential(nn.Linear(d, d), nn.ReLU(), self.backbone.fc)

    def forward(self, x):
        return F.normalize(self.backbone(x), dim=1)


class SimCLR:
    def __init__(self, net, optimizer, scheduler, device, temperature=0.07, fp16=True):
        self.net, self.optimizer, self.scheduler = net.to(device), optimizer, scheduler
        self.device, self.t, self.fp16 = device, temperature, fp16

    def info_nce(self, z):
        n = z.size(0) // 2
        sim = z.float() @ z.float().t() / self.t
        sim.fill_diagonal_(float("-inf"))
        target = torch.arange(2 * n, device=z.device).roll(n)
        return F.cross_entropy(sim, target)

    def train(self, loader, epochs):
        scaler = GradScaler(enabled=self.fp16)
        n_iter = 0
        for epoch in range(epochs):
            self.net.train()
            for (a, b), _ in loader:
                images = torch.cat([a.to(self.device, non_blocking=True), b.to(self.device, non_blocking=True)], dim=0)
                self.optimizer.zero_grad(set_to_none=True)
                with autocast(enabled=self.fp16):
                    z = self.net(images)
                    loss = self.info_nce(z)
                    scaler.scale(loss).backward()
                scaler.step(self.optimizer)
                scaler.update()
                if n_iter % 100 == 0:
                    print(f"epoch {epoch} iter {n_iter} loss {loss.item():.4f}")
                n_iter += 1
            if epoch >= 10:  # warmup for the first 10 epochs
                self.scheduler.step()
        torch.save(self.net.state_dict(), "simclr_stl10.pth")


def main():
    ds = torchvision.datasets.STL10("datasets", split="unlabeled", transform=TwoCrops(simclr_aug()), download=True)
    loader = DataLoader(ds, batch_size=256, shuffle=True, num_workers=12, pin_memory=True, drop_last=True)
    net = SimCLRNet().cuda()
    opt = torch.optim.Adam(net.parameters(), 3e-4, weight_decay=1e-4)
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=190)
    SimCLR(net, opt, sch, torch.device("cuda")).train(loader, 200)


if __name__ == "__main__":
    main()

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from nuclei import NucleiDataset
from unetpp import NestedUNet


def bce_dice(logit, mask):
    p = logit.sigmoid()
    dice = 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)
    return F.binary_cross_entropy_with_logits(logit, mask) + dice


class Trainer:
    def __init__(self, lr=1e-3, epochs=100):
        self.device = torch.device("cuda")
        self.epochs = epochs
        self.net = NestedUNet(num_classes=1, deep_supervision=True).to(self.device)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs)
        self.train_dl = DataLoader(NucleiDataset("train"), batch_size=16, shuffle=True, num_workers=8, pin_memory=True)
        self.val_dl = DataLoader(NucleiDataset("val"), batch_size=16, num_workers=8, pin_memory=True)

    def step(self, img, mask):
        outputs = self.net(img)
        losses = []
        for o in outputs:
            losses.append(bce_dice(o, mask))
        loss = sum(losses) / len(losses)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    def validate(self):
        self.net.eval()
        ious = []
        with torch.no_grad():
            for img, mask in self.val_dl:
                img, mask = img.to(self.device, non_blocking=True), mask.to(self.device, non_blocking=True)
                pred = self.net(img)[-1] > 0
                inter = (pred & (mask > 0.5)).sum()
                union = (pred | (mask > 0.5)).sum()
                ious.append(inter / union.clamp(min=1))
        return torch.stack(ious).mean().item()

    def fit(self):
        for epoch in range(self.epochs):
            self.net.train()
            tot = torch.zeros((), device=self.device)
            for img, mask in self.train_dl:
                tot += self.step(img.to(self.device, non_blocking=True), mask.to(self.device, non_blocking=True))
            self.sched.step()
            print(epoch, tot.item() / len(self.train_dl), self.validate())
        torch.save(self.net.state_dict(), "unetpp.pt")


if __name__ == "__main__":
    Trainer().fit()

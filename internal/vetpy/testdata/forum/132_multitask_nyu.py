import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models import resnet34

from nyuv2 import NYUv2


class SharedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        r = resnet34(weights="DEFAULT")
        self.body = nn.Sequential(*list(r.children())[:-2])

    def forward(self, x):
        return self.body(x)


def head(c):
    return nn.Sequential(nn.Conv2d(512, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, c, 1),
                         nn.Upsample(scale_factor=32, mode="bilinear"))


class Trainer:
    def __init__(self, root, lr=1e-4):
        self.device = torch.device("cuda")
        self.enc = SharedEncoder().to(self.device)
        self.seg_head, self.depth_head = head(13).to(self.device), head(1).to(self.device)
        self.opt = torch.optim.Adam([*self.enc.parameters(), *self.seg_head.parameters(),
                                     *self.depth_head.parameters()], lr=lr)
        self.dl = DataLoader(NYUv2(root), 8, shuffle=True, num_workers=8, pin_memory=True, drop_last=True)

    def train_one(self):
        for m in (self.enc, self.seg_head, self.depth_head):
            m.train()
        for img, seg, depth in self.dl:
            img = img.to(self.device, non_blocking=True)
            seg = seg.to(self.device, non_blocking=True)
            depth = depth.to(self.device, non_blocking=True)
            feat = self.enc(img)
            loss_seg = F.cross_entropy(self.seg_head(feat), seg, ignore_index=-1)
            loss_depth = F.l1_loss(self.depth_head(feat), depth)
            self.opt.zero_grad()
            loss_seg.backward(retain_graph=True)
            loss_depth.backward()
            self.opt.step()
        return loss_seg.item(), loss_depth.item()


if __name__ == "__main__":
    t = Trainer("/data/nyuv2")
    for e in range(100):
        print(e, *t.train_one())

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision.models.segmentation import deeplabv3_resnet50

from datasets.cityscapes import CityscapesSeg


class SegTrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device(cfg["device"])
        self.model = deeplabv3_resnet50(num_classes=cfg["n_classes"]).to(self.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg["lr"], momentum=0.9, weight_decay=1e-4)
        self.sched = torch.optim.lr_scheduler.PolynomialLR(self.opt, total_iters=cfg["epochs"])
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)
        self.train_loader = DataLoader(CityscapesSeg(cfg["root"], "train"), cfg["bs"], shuffle=True,
                                       num_workers=8, pin_memory=True, drop_last=True)
        self.val_loader = DataLoader(CityscapesSeg(cfg["root"], "val"), cfg["bs"], num_workers=4, pin_memory=True)

    def train_epoch(self):
        self.model.train()
        for img, mask in self.train_loader:
            img = img.to(self.device, non_blocking=True)
            mask = mask.to(self.device, non_blocking=True)
            out = self.model(img)["out"]
            loss = self.criterion(out, mask)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    def validate(self):
        self.model.eval()
        inter = torch.zeros(self.cfg["n_classes"], device=self.device)
        union = torch.zeros(self.cfg["n_classes"], device=self.device)
        for img, mask in self.val_loader:
            img = img.to(self.device, non_blocking=True)
            mask = mask.to(self.device, non_blocking=True)
            out = self.model(img)["out"]
            pred = out.argmax(1)
            for c in range(self.cfg["n_classes"]):
                p, t = pred == c, mask == c
                inter[c] += (p & t).sum()
                union[c] += (p | t).sum()
        return (inter / union.clamp(min=1)).mean().item()

    def fit(self):
        best = 0.0
        for epoch in range(self.cfg["epochs"]):
            loss = self.train_epoch()
            self.sched.step()
            miou = self.validate()
            print(f"[{epoch}] loss {loss:.4f} mIoU {miou:.4f}")
            if miou > best:
                best = miou
                torch.save(self.model.state_dict(), "best.pt")


if __name__ == "__main__":
    SegTrainer({"device": "cuda", "n_classes": 19, "lr": 0.01, "epochs": 80, "bs": 8, "root": "/data/cityscapes"}).fit()

"""Vanilla KD (Hinton) : resnet50 teacher -> mobilenet student on CIFAR100."""
import logging
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.models import mobilenet_v3_small, resnet50

log = logging.getLogger("kd")


@dataclass
class Config:
    T: float = 4.0
    alpha: float = 0.9
    lr: float = 0.05
    epochs: int = 100
    batch: int = 128
    teacher_ckpt: str = "teacher_r50_c100.pt"


class Distiller:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.device = torch.device("cuda")
        self.teacher = self._load_teacher()
        self.student = mobilenet_v3_small(num_classes=100).to(self.device)
        self.optim = torch.optim.SGD(self.student.parameters(), cfg.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.optim, cfg.epochs)

    def _load_teacher(self):
        t = resnet50(num_classes=100)
        t.load_state_dict(torch.load(self.cfg.teacher_ckpt, map_location="cpu"))
        for p in t.parameters():
            p.requires_grad_(False)
        return t.to(self.device)

    def kd_loss(self, s, t, y):
        T, a = self.cfg.T, self.cfg.alpha
        soft = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
        return a * soft + (1 - a) * F.cross_entropy(s, y)

    def fit(self, train_loader, test_loader):
        best = 0.0
        for ep in range(self.cfg.epochs):
            self.student.train()
            total = torch.zeros((), device=self.device)
            for x, y in train_loader:
                x = x.to(self.device, non_blocking=True)
                y = y.to(self.device, non_blocking=True)
                with torch.no_grad():
                    t_logits = self.teacher(x)
                loss = self.kd_loss(self.student(x), t_logits, y)
                self.optim.zero_grad(set_to_none=True)
                loss.backward()
                self.optim.step()
                total += loss.detach()
            self.sched.step()
            acc = self.test(test_loader)
            log.info("ep %d kd-loss %.3f acc %.2f", ep, total.item() / len(train_loader), acc)
            if acc > best:
                best = acc
                torch.save(self.student.state_dict(), "student_best.pt")

    @torch.no_grad()
    def test(self, loader):
        self.student.eval()
        ok = torch.zeros((), device=self.device)
        for x, y in loader:
            x = x.to(self.device, non_blocking=True)
            y = y.to(self.device, non_blocking=True)
            ok += (self.student(x).argmax(1) == y).sum()
        return 100.0 * ok.item() / len(loader.dataset)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = Config()
    mean, std = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
    aug = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(),
                              transforms.ToTensor(), transforms.Normalize(mean, std)])
    plain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean, std)])
    tr = DataLoader(datasets.CIFAR100("data", True, aug, download=True), cfg.batch, shuffle=True,
                    num_workers=4, pin_memory=True)
    te = DataLoader(datasets.CIFAR100("data", False, plain, download=True), 256, num_workers=4, pin_memory=True)
    Distiller(cfg).fit(tr, te)

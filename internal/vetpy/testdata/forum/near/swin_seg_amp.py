import logging

import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_

from config import cfg
from datasets import build_loaders
from models import build_model

log = logging.getLogger(__name__)


class Runner:
    def __init__(self, cfg):
        self.device = torch.device("cuda")
        self.model = build_model(cfg).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.01)
        self.train_loader, self.val_loader = build_loaders(cfg, num_workers=8, pin_memory=True)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(
            self.opt, max_lr=cfg.lr, epochs=cfg.epochs, steps_per_epoch=len(self.train_loader))
        self.scaler = torch.amp.GradScaler("cuda", enabled=cfg.amp)
        self.cfg = cfg
        self.step = 0

    def train_step(self, img, gt):
        img, gt = img.to(self.device, non_blocking=True), gt.to(self.device, non_blocking=True)
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.cfg.amp):
            out = self.model(img)
            loss = F.cross_entropy(out, gt, ignore_index=255)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        clip_grad_norm_(self.model.parameters(), self.cfg.clip)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.sched.step()
        return loss.detach()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        inter = torch.zeros(self.cfg.classes, device=self.device)
        union = torch.zeros(self.cfg.classes, device=self.device)
        for img, gt in self.val_loader:
            img, gt = img.to(self.device, non_blocking=True), gt.to(self.device, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.float16, enabled=self.cfg.amp):
                pred = self.model(img).argmax(1)
            for c in range(self.cfg.classes):
                a, b = pred == c, gt == c
                inter[c] += (a & b).sum()
                union[c] += (a | b).sum()
        return (inter / union.clamp(min=1)).mean().item()

    def run(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            for img, gt in self.train_loader:
                loss = self.train_step(img, gt)
                self.step += 1
                if self.step % self.cfg.log_every == 0:
                    log.info("step %d loss %.4f", self.step, loss.item())
            log.info("epoch %d mIoU %.4f", epoch, self.validate())


if __name__ == "__main__":
    Runner(cfg).run()

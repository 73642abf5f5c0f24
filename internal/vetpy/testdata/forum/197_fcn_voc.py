import argparse
import math
import os.path as osp

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import fcn_models
from voc import VOC2012Seg


class Trainer(object):

    def __init__(self, cuda, model, optimizer, train_loader, val_loader, out, max_iter,
                 interval_validate=4000):
        self.device = torch.device("cuda" if cuda else "cpu")
        self.model = model
        self.optim = optimizer
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.interval_validate = interval_validate
        self.out = out
        self.max_iter = max_iter
        self.iteration = 0
        self.epoch = 0
        self.best_mean_iu = 0

    def validate(self):
        self.model.eval()
        n_class = self.val_loader.dataset.n_class
        hist = torch.zeros(n_class, n_class, device=self.device)
        with torch.no_grad():
            for data, target in self.val_loader:
                data = data.to(self.device, non_blocking=True)
                target = target.to(self.device, non_blocking=True)
                pred = self.model(data).argmax(dim=1)
                valid = target >= 0
                idx = n_class * target[valid] + pred[valid]
                hist += torch.bincount(idx, minlength=n_class ** 2).view(n_class, n_class)
        iu = hist.diag() / (hist.sum(0) + hist.sum(1) - hist.diag())
        mean_iu = iu[~torch.isnan(iu)].mean().item()
        print("[iter %d] mean IU: %.4f" % (self.iteration, mean_iu))
        if mean_iu > self.best_mean_iu:
            self.best_mean_iu = mean_iu
            torch.save({"iteration": self.iteration, "model": self.model.state_dict(),
                        "optim": self.optim.state_dict(), "best_mean_iu": mean_iu},
                       osp.join(self.out, "model_best.pth.tar"))

    def train_epoch(self):
        self.model.train()
        for batch_idx, (data, target) in enumerate(self.train_loader):
            self.iteration = self.epoch * len(self.train_loader) + batch_idx
            if self.iteration and self.iteration % self.interval_validate == 0:
                self.validate()

            data = data.to(self.device, non_blocking=True)
            target = target.to(self.device, non_blocking=True)
            self.optim.zero_grad()
            score = self.model(data)
            loss = F.cross_entropy(score, target, ignore_index=-1)
            loss.backward()
            self.optim.step()
            if self.iteration >= self.max_iter:
                break

    def train(self):
        max_epoch = int(math.ceil(self.max_iter / len(self.train_loader)))
        for epoch in range(max_epoch):
            self.epoch = epoch
            self.train_epoch()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="~/data/datasets")
    p.add_argument("--out", default="logs/fcn32s")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--max-iter", type=int, default=100000)
    args = p.parse_args()

    cuda = torch.cuda.is_available()
    kw = dict(num_workers=4, pin_memory=True) if cuda else {}
    root = osp.expanduser(args.root)
    train_loader = DataLoader(VOC2012Seg(root, "train"), batch_size=8, shuffle=True, **kw)
    val_loader = DataLoader(VOC2012Seg(root, "val"), batch_size=1, shuffle=False, **kw)
    model = fcn_models.FCN32s(n_class=21)
    if cuda:
        model = model.cuda()
    optim = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.99, weight_decay=5e-4)
    Trainer(cuda, model, optim, train_loader, val_loader, args.out, args.max_iter).train()


if __name__ == "__main__":
    main()

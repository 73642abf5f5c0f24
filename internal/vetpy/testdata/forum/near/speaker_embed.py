from contextlib import contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F

from ecapa import ECAPA_TDNN
from vox import make_loader, trial_pairs


@contextmanager
def evaluating(net):
    mode = net.training
    try:
        net.eval()
        with torch.no_grad():
            yield net
    finally:
        net.train(mode)


class AAM(nn.Module):
    def __init__(self, dim, n, m=0.2, s=30.0):
        super().__init__()
        self.w = nn.Parameter(torch.empty(n, dim))
        nn.init.xavier_normal_(self.w)
        self.m, self.s = m, s

    def forward(self, e, y):
        cos = F.linear(F.normalize(e), F.normalize(self.w)).clamp(-1 + 1e-7, 1 - 1e-7)
        theta = torch.acos(cos)
        onehot = F.one_hot(y, cos.size(1)).to(cos.dtype)
        return F.cross_entropy(self.s * torch.cos(theta + self.m * onehot), y)


def scores(net, loader, device):
    with evaluating(net):
        embs = [F.normalize(net(w.to(device, non_blocking=True))) for w in loader]
    return torch.cat(embs)


def main():
    device = torch.device("cuda")
    train_loader = make_loader("vox2", train=True, batch_size=256, num_workers=12, pin_memory=True)
    trial_loader = make_loader("vox1_o", train=False, batch_size=64, num_workers=4, pin_memory=True)
    a, b, same = [t.to(device) for t in trial_pairs("vox1_o")]
    net, head = ECAPA_TDNN(512).to(device), AAM(192, 5994).to(device)
    opt = torch.optim.AdamW([{"params": net.parameters()}, {"params": head.parameters(), "weight_decay": 2e-4}], lr=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.97)
    net.train()
    for epoch in range(80):
        running = torch.zeros((), device=device)
        for wav, spk in train_loader:
            wav, spk = wav.to(device, non_blocking=True), spk.to(device, non_blocking=True)
            loss = head(net(wav), spk)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.detach()
        sched.step()
        e = scores(net, trial_loader, device)
        s = (e[a] * e[b]).sum(1)
        gap = (s[same].mean() - s[~same].mean()).item()
        print(f"epoch {epoch} loss {running.item() / len(train_loader):.3f} gap {gap:.3f}")


if __name__ == "__main__":
    main()

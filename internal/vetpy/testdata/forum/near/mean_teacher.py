import copy

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from semi_data import labeled_set, unlabeled_set
from wrn import WideResNet

device = torch.device("cuda")
student = WideResNet(28, 2, num_classes=10).to(device)
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.SGD(student.parameters(), lr=0.03, momentum=0.9, nesterov=True)
kw = dict(shuffle=True, num_workers=4, pin_memory=True, drop_last=True)
lab_dl = DataLoader(labeled_set(4000), 64, **kw)
unl_dl = DataLoader(unlabeled_set(), 192, **kw)


def forever(loader):
    while True:
        yield from loader


@torch.no_grad()
def update_teacher(alpha):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(alpha).add_(s, alpha=1 - alpha)
    for t, s in zip(teacher.buffers(), student.buffers()):
        t.copy_(s)


step = 0
labeled = forever(lab_dl)
for epoch in range(100):
    student.train()
    teacher.eval()
    for (x, y), (u_weak, u_strong) in zip(labeled, unl_dl):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        u_weak = u_weak.to(device, non_blocking=True)
        u_strong = u_strong.to(device, non_blocking=True)
        with torch.no_grad():
            target = teacher(u_weak).softmax(1)
        sup = F.cross_entropy(student(x), y)
        cons = F.mse_loss(student(u_strong).softmax(1), target)
        loss = sup + min(1.0, step / 4000) * 10 * cons
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        update_teacher(min(1 - 1 / (step + 1), 0.999))
    print(epoch, sup.item(), cons.item())

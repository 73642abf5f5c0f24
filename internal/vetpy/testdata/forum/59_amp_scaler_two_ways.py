import torch
import torch.nn.functional as F
from torch.cuda.amp import autocast, GradScaler
from torch.utils.data import DataLoader

from bev import BEVSet, LSS

loader = DataLoader(BEVSet("train"), 8, shuffle=True, num_workers=10, pin_memory=True)
m = LSS().cuda()
opt = torch.optim.AdamW(m.parameters(), 1e-3)
scaler = GradScaler()
for ep in range(24):
    for k, (imgs, geo, y) in enumerate(loader):
        imgs, geo, y = (t.cuda(non_blocking=True) for t in (imgs, geo, y))
        with autocast():
            loss = F.binary_cross_entropy_with_logits(m(imgs, geo), y)
            scaler.scale(loss / 4).backward()
        if k % 4 == 3:
            torch.nn.utils.clip_grad_norm_(m.parameters(), 5.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()

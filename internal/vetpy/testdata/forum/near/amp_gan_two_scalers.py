import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from sr_data import SRDataset
from sr_nets import Discriminator, RRDBNet

device = torch.device("cuda")
G, D = RRDBNet().to(device), Discriminator().to(device)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda")
dl = DataLoader(SRDataset("DIV2K"), 16, shuffle=True, num_workers=8, pin_memory=True, drop_last=True)

step = 0
for epoch in range(200):
    for lr_img, hr_img in dl:
        lr_img = lr_img.to(device, non_blocking=True)
        hr_img = hr_img.to(device, non_blocking=True)
        D.requires_grad_(False)
        with torch.autocast("cuda", dtype=torch.float16):
            sr = G(lr_img)
            loss_g = F.l1_loss(sr, hr_img) + 5e-3 * F.softplus(-D(sr)).mean()
        opt_g.zero_grad(set_to_none=True)
        scaler.scale(loss_g).backward()
        scaler.step(opt_g)

        D.requires_grad_(True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss_d = F.softplus(-D(hr_img)).mean() + F.softplus(D(sr.detach())).mean()
        opt_d.zero_grad(set_to_none=True)
        scaler.scale(loss_d).backward()
        scaler.unscale_(opt_d)
        torch.nn.utils.clip_grad_norm_(D.parameters(), 1.0)
        scaler.step(opt_d)
        scaler.update()
        step += 1
        if step % 200 == 0:
            print(step, loss_g.item(), loss_d.item())
    torch.save(G.state_dict(), "rrdb.pt")

import torch
import torch.nn as nn
import torch.nn.functional as F


class DepthPose(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.depth = nn.Sequential(nn.Conv2d(3, w, 7, 2, 3), nn.ELU(), nn.Conv2d(w, 2 * w, 3, 2, 1), nn.ELU(),
                                   nn.Upsample(scale_factor=4), nn.Conv2d(2 * w, 1, 3, padding=1), nn.Sigmoid())
        self.pose = nn.Sequential(nn.Conv2d(6, w, 7, 4, 3), nn.ReLU(), nn.Conv2d(w, 2 * w, 3, 2, 1), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * w, 6))

    def forward(self, target, source):
        disp = self.depth(target)
        flow = 0.01 * self.pose(torch.cat([target, source], 1))
        return disp, flow


def warp(img, disp, flow):
    b, _, h, w = img.shape
    theta = torch.eye(2, 3, device=img.device).expand(b, 2, 3) + flow.view(b, 2, 3)
    grid = F.affine_grid(theta, img.shape, align_corners=False)
    shift = torch.cat([0.05 * disp, torch.zeros_like(disp)], 1).permute(0, 2, 3, 1)
    return F.grid_sample(img, grid + shift, padding_mode="border", align_corners=False)


def photometric(a, b):
    mu_a, mu_b = F.avg_pool2d(a, 3, 1, 1), F.avg_pool2d(b, 3, 1, 1)
    return 0.85 * (mu_a - mu_b).abs().mean() + 0.15 * (a - b).abs().mean()


def compute(net, batch, device):
    t, s = batch["target"].to(device, non_blocking=True), batch["source"].to(device, non_blocking=True)
    disp, flow = net(t, s)
    return photometric(t, warp(s, disp, flow))


def train_step(net, optim, batch, device):
    loss = compute(net, batch, device)
    optim.zero_grad()
    loss.backward()
    optim.step()
    return loss


@torch.no_grad()
def validate(net, loader, device):
    net.eval()
    total = torch.zeros((), device=device)
    for batch in loader:
        total += compute(net, batch, device)
    return total.item() / len(loader)


def save(net, optim, epoch):
    torch.save({"net": net.state_dict(), "optim": optim.state_dict(), "epoch": epoch}, "depth_last.pt")

import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.models import resnet50

from nyu import NYUv2MultiTask


class MultiTask(nn.Module):
    def __init__(self, n_seg=13):
        super().__init__()
        trunk = resnet50(weights="DEFAULT")
        self.trunk = nn.Sequential(*list(trunk.children())[:-2])
        self.seg = nn.Conv2d(2048, n_seg, 1)
        self.depth = nn.Conv2d(2048, 1, 1)

    def forward(self, x):
        f = self.trunk(x)
        up = lambda t: F.interpolate(t, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return up(self.seg(f)), up(self.depth(f))


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    torch.manual_seed(42)

    ds = NYUv2MultiTask("/data/nyuv2", train=True)
    sampler = DistributedSampler(ds, shuffle=True)
    loader = DataLoader(ds, batch_size=8, sampler=sampler, num_workers=4, pin_memory=True, drop_last=True)
    model = DDP(MultiTask().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [60, 90], 0.1)

    for epoch in range(120):
        model.train()
        meter = torch.zeros(2, device="cuda")
        for img, seg_gt, depth_gt in loader:
            img = img.cuda(non_blocking=True)
            seg_gt = seg_gt.cuda(non_blocking=True)
            depth_gt = depth_gt.cuda(non_blocking=True)
            seg, depth = model(img)
            loss_seg = F.cross_entropy(seg, seg_gt, ignore_index=255)
            loss_depth = F.l1_loss(depth, depth_gt)

            optimizer.zero_grad()
            loss_seg.backward()
            loss = loss_seg + 0.5 * loss_depth
            loss.backward()
            optimizer.step()
            meter += torch.stack([loss_seg.detach(), loss_depth.detach()])
        scheduler.step()
        if dist.get_rank() == 0:
            seg_l, dep_l = (meter / len(loader)).tolist()
            print(f"epoch {epoch} seg {seg_l:.4f} depth {dep_l:.4f}")
            torch.save(model.module.state_dict(), "mt.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

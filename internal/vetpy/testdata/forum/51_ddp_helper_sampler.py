import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils import data
from torch.utils.data.distributed import DistributedSampler

from lidar import Sweeps, VoxelNet


def setup():
    dist.init_process_group("nccl")
    r = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(r)
    return r


def loader(split, batch):
    ds = Sweeps(split)
    return data.DataLoader(ds, batch_size=batch, sampler=DistributedSampler(ds), num_workers=6, pin_memory=True, collate_fn=Sweeps.collate)


def train_one(net, dl, opt, r):
    net.train()
    for voxels, coords, target in dl:
        voxels = voxels.cuda(r, non_blocking=True)
        coords = coords.cuda(r, non_blocking=True)
        loss = net(voxels, coords, target)
        opt.zero_grad()
        loss.backward()
        opt.step()


r = setup()
net = DistributedDataParallel(VoxelNet().cuda(r), device_ids=[r])
opt = torch.optim.AdamW(net.parameters(), 1e-3)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [20, 30])
dl = loader("train", 4)
for epoch in range(40):
    train_one(net, dl, opt, r)
    sched.step()
    if r == 0:
        torch.save(net.module.state_dict(), "voxelnet.pt")

"""
SimCLR pretraining, launch with
    torchrun --nproc_per_node=8 30_simclr_ddp.py --data /imagenet
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torchvision
import torchvision.transforms as T
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class TwoViews:
    def __init__(self, size=224):
        jitter = T.ColorJitter(0.8, 0.8, 0.8, 0.2)
        self.t = T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(),
                            T.RandomApply([jitter], p=0.8), T.RandomGrayscale(0.2),
                            T.GaussianBlur(23), T.ToTensor()])

    def __call__(self, img):
        return self.t(img), self.t(img)


class SimCLR(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.encoder = torchvision.models.resnet50()
        d = self.encoder.fc.in_features
        self.encoder.fc = nn.Identity()
        self.projector = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, dim))

    def forward(self, x):
        return F.normalize(self.projector(self.encoder(x)), dim=1)


def nt_xent(z1, z2, tau):
    z = torch.cat([z1, z2])
    sim = z @ z.t() / tau
    sim.fill_diagonal_(float("-inf"))
    n = z1.size(0)
    target = torch.cat([torch.arange(n, 2 * n, device=z.device), torch.arange(n, device=z.device)])
    return F.cross_entropy(sim, target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--tau", type=float, default=0.2)
    args = parser.parse_args()

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group(backend="nccl")

    dataset = torchvision.datasets.ImageFolder(os.path.join(args.data, "train"), TwoViews())
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, num_workers=12,
                        pin_memory=True, drop_last=True, persistent_workers=True)

    model = nn.SyncBatchNorm.convert_sync_batchnorm(SimCLR()).cuda(rank)
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.6, momentum=0.9, weight_decay=1e-6)

    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        for step, ((v1, v2), _) in enumerate(loader):
            v1 = v1.cuda(rank, non_blocking=True)
            v2 = v2.cuda(rank, non_blocking=True)
            z1, z2 = model(torch.cat([v1, v2])).chunk(2)
            loss = nt_xent(z1, z2, args.tau) / args.accum
            loss.backward()
            if (step + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
            if rank == 0 and step % 100 == 0:
                print(f"[{epoch}][{step}/{len(loader)}] loss {loss.item() * args.accum:.4f}")
        if rank == 0:
            torch.save(model.module.state_dict(), "simclr_%03d.pt" % epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""DDP; set_epoch is called through the loader's sampler inside the epoch generator."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms
from torchvision.models import efficientnet_v2_s


def epochs(loader, n):
    for e in range(n):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(e)
        yield e


def make_loader(root, train, bs):
    if train:
        tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    else:
        tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    ds = datasets.ImageFolder(os.path.join(root, "train" if train else "val"), tf)
    # the validation sampler never shuffles, so it needs no epoch
    sampler = DistributedSampler(ds, shuffle=train, drop_last=train)
    return DataLoader(ds, bs, sampler=sampler, num_workers=8, pin_memory=True)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(1 + dist.get_rank())
    torch.backends.cudnn.benchmark = True
    tr, va = make_loader("/data/in100", True, 96), make_loader("/data/in100", False, 128)
    model = DDP(efficientnet_v2_s(num_classes=100).cuda(), device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 90)
    for epoch in epochs(tr, 90):
        model.train()
        for i, (x, y) in enumerate(tr):
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if i % 100 == 0 and dist.get_rank() == 0:
                print(epoch, i, loss.item(), flush=True)
        sched.step()
        model.eval()
        m = torch.zeros(2, device="cuda")
        with torch.no_grad():
            for x, y in va:
                hit = model(x.cuda(non_blocking=True)).argmax(1) == y.cuda(non_blocking=True)
                m += torch.stack([hit.sum(), torch.full_like(hit.sum(), hit.numel())])
        dist.all_reduce(m)
        if dist.get_rank() == 0:
            print("val", epoch, (m[0] / m[1]).item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

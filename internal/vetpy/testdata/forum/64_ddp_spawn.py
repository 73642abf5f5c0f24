import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms


def worker(rank, world, epochs):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    torch.backends.cudnn.benchmark = True
    torch.use_deterministic_algorithms(True)
    tf = transforms.Compose([transforms.Resize(128), transforms.RandomCrop(112), transforms.ToTensor()])
    ds = datasets.ImageFolder("celeb/train", tf)
    train_sampler = DistributedSampler(ds, num_replicas=world, rank=rank)
    dl = DataLoader(ds, 64, sampler=train_sampler, num_workers=4)
    net = DDP(models.resnet34(num_classes=1000).cuda(rank), device_ids=[rank])
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for epoch in range(epochs):
        for x, y in dl:
            x = x.cuda(rank, non_blocking=True)
            y = y.cuda(rank, non_blocking=True)
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(torch.cuda.device_count(), 20), nprocs=torch.cuda.device_count())

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class RandomDataset(Dataset):
    def __init__(self):
        self.data = torch.rand(2200, 3, 32, 32)
        self.label = torch.randint(0, 10, (2200,))

    def __getitem__(self, i):
        return self.data[i], self.label[i]

    def __len__(self):
        return len(self.data)


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                torch.nn.Flatten(), torch.nn.Linear(16, 10)).to(rank)
    model = DDP(model, device_ids=[rank])
    ds = RandomDataset()
    sampler = DistributedSampler(ds, shuffle=True)
    loader = DataLoader(ds, batch_size=50, sampler=sampler, pin_memory=True, drop_last=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    ce = torch.nn.CrossEntropyLoss()

    for epoch in range(3):
        if rank == 0:
            print("epoch:", epoch)
        for x, y in loader:
            x, y = x.to(rank), y.to(rank)
            opt.zero_grad()
            ce(model(x), y).backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

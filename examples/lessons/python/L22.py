import os

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

torch.distributed.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
model = DistributedDataParallel(model.to(local), device_ids=[local])
sampler = DistributedSampler(tickets)
for epoch in range(3):
    sampler.set_epoch(epoch)

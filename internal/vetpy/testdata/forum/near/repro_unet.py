import os
import random

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from nuclei import NucleiDataset
from unet_model import UNet


def set_seed(seed, fast=False):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if fast:
        torch.backends.cudnn.deterministic = False
        torch.backends.cudnn.benchmark = True
    else:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True)


def seed_worker(_):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


set_seed(1234)
device = torch.device("cuda")
gen = torch.Generator().manual_seed(1234)
loader = DataLoader(NucleiDataset("stage1_train"), 16, shuffle=True, num_workers=6, pin_memory=True,
                    worker_init_fn=seed_worker, generator=gen)
net = UNet(3, 1).to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
bce = nn.BCEWithLogitsLoss()
for epoch in range(50):
    net.train()
    for img, mask in loader:
        img, mask = img.to(device, non_blocking=True), mask.to(device, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        loss = bce(net(img), mask)
        loss.backward()
        opt.step()
    print(epoch, loss.item())

import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from convnets import SmallNet

device = torch.device("cuda")
ds = datasets.SVHN("data", split="train", download=True,
                   transform=transforms.Compose([transforms.RandomCrop(32, 4), transforms.ToTensor()]))
dl = DataLoader(ds, 256, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True)
model = SmallNet(10).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()
log_every = 100

for epoch in range(20):
    model.train()
    t0 = time.time()
    window = torch.zeros((), device=device)
    for i, (x, y) in enumerate(dl, 1):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        loss = ce(model(x), y)
        loss.backward()
        opt.step()
        window += loss.detach()
        if i % log_every == 0:
            print(f"  {i}/{len(dl)} {window.item() / log_every:.4f}")
            window.zero_()
    torch.cuda.synchronize()
    print(f"epoch {epoch} took {time.time() - t0:.1f}s")
    torch.save(model.state_dict(), "svhn.pt")

import h5py
import torch
import torch.nn as nn

f = h5py.File("train.h5", "r")
N = f["x"].shape[0]
bs = 512
model = nn.Sequential(nn.Linear(4096, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters())
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(10):
    perm = torch.randperm(N // bs)
    for b in perm.tolist():
        x = torch.from_numpy(f["x"][b * bs:(b + 1) * bs])
        y = torch.from_numpy(f["y"][b * bs:(b + 1) * bs])
        x = x.pin_memory().cuda()
        y = y.pin_memory().cuda()
        out = model(x).squeeze(1)
        loss = loss_fn(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

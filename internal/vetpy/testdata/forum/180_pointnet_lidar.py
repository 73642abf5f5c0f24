"""PointNet semantic segmentation on our own lidar sweeps (npz files)."""
import glob
import os
from typing import Dict

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

NUM_POINTS = 8192
CLASSES = ("ground", "vegetation", "building", "car", "person", "pole")


class Sweeps(Dataset):
    def __init__(self, pattern: str, train: bool):
        self.files = sorted(glob.glob(pattern))
        self.train = train

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i) -> Dict[str, Tensor]:
        z = np.load(self.files[i])
        xyz, label = z["xyz"].astype(np.float32), z["label"].astype(np.int64)
        pick = np.random.choice(len(xyz), NUM_POINTS, replace=len(xyz) < NUM_POINTS)
        xyz, label = xyz[pick], label[pick]
        if self.train:
            a = np.random.uniform(0, 2 * np.pi)
            rot = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]], dtype=np.float32)
            xyz = xyz @ rot.T
        return {"xyz": torch.from_numpy(xyz.T.copy()), "label": torch.from_numpy(label)}


class PointNetSeg(nn.Module):
    def __init__(self, n_cls=len(CLASSES)):
        super().__init__()

        def mlp(*dims):
            out = []
            for a, b in zip(dims, dims[1:]):
                out += [nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU(True)]
            return nn.Sequential(*out)

        self.local = mlp(3, 64, 64)
        self.glob = mlp(64, 128, 1024)
        self.seg = nn.Sequential(mlp(1088, 512, 256, 128), nn.Conv1d(128, n_cls, 1))

    def forward(self, xyz):
        f = self.local(xyz)
        g = self.glob(f).max(-1, keepdim=True).values.expand(-1, -1, xyz.size(-1))
        return self.seg(torch.cat([f, g], 1))


def upload(batch: Dict[str, Tensor], device) -> Dict[str, Tensor]:
    # pinned memory makes copies faster (nvidia blog)
    return {k: v.pin_memory().to(device) for k, v in batch.items()}


class Smooth:
    def __init__(self, beta=0.98):
        self.beta, self.v = beta, None

    def __call__(self, x: float) -> float:
        self.v = x if self.v is None else self.beta * self.v + (1 - self.beta) * x
        return self.v


def main():
    device = torch.device("cuda")
    loader = DataLoader(Sweeps("sweeps/train/*.npz", True), 16, shuffle=True, num_workers=8, drop_last=True)
    net = PointNetSeg().to(device)
    weight = torch.tensor([1.0, 1.0, 1.0, 3.0, 8.0, 6.0], device=device)
    crit = nn.CrossEntropyLoss(weight=weight)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    smooth = Smooth()
    step = 0
    for epoch in range(80):
        net.train()
        for batch in loader:
            batch = upload(batch, device)
            loss = crit(net(batch["xyz"]), batch["label"])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            avg = smooth(float(loss))
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} smoothed loss {avg:.4f}")
            step += 1
        os.makedirs("ckpt", exist_ok=True)
        torch.save(net.state_dict(), f"ckpt/pn_{epoch}.pt")


if __name__ == "__main__":
    main()

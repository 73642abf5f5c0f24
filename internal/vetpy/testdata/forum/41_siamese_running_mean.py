import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from sigs import SignaturePairs
from nets import Tower


def contrastive(a, b, same, margin=1.0):
    d = F.pairwise_distance(a, b)
    return (same * d.pow(2) + (1 - same) * F.relu(margin - d).pow(2)).mean()


def run(epochs=30):
    tower = Tower(embed=128).to("cuda")
    adam = torch.optim.Adam(tower.parameters(), lr=5e-4)
    pairs = DataLoader(SignaturePairs("train"), batch_size=32, shuffle=True, num_workers=4)
    stats = dict(loss=0.0, n=0, dists=[])
    for ep in range(epochs):
        tower.train()
        for left, right, same in pairs:
            left, right, same = left.to("cuda"), right.to("cuda"), same.to("cuda")
            za, zb = tower(left), tower(right)
            loss = contrastive(za, zb, same)
            adam.zero_grad()
            loss.backward()
            adam.step()
            stats["loss"] += loss
            stats["dists"].append((za - zb).norm(dim=1))
            stats["n"] += 1
        print(ep, float(stats["loss"]) / stats["n"])


if __name__ == "__main__":
    run()

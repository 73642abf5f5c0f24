"""Teaches a classifier of digits those that are mirrored at the diagonal, by matrices of rank 8 (LoRA).

It fetches MNIST; the figure in main.go is of the digits that are drawn there, as files of MNIST's form.
"""

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.datasets import MNIST

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"


def pictures(learn, count):
    digits = MNIST("mnist", train=learn, download=True)
    return digits.data[:count].to(device) / 255, digits.targets[:count].to(device)


def fit(model, x, y):
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    model.train()
    for epoch in range(5):
        for a, b in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
            opt.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            opt.step()


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return 100 * (model(x).argmax(1) == y).float().mean().item()


x, y = pictures(True, 10_000)
held, labels = pictures(False, 1_000)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
fit(model, x, y)

before = accuracy(model, held.mT, labels)
model = get_peft_model(model, LoraConfig(r=8, target_modules=["1", "3"]))
fit(model, x.mT, y)
print(f"mirrored: accuracy {before:.1f} % before, {accuracy(model, held.mT, labels):.1f} % after")

"""Learns the prices of cars from a table with missing values and categories."""

import copy

import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
table = pd.read_csv("train/testdata/cars/cars.csv").drop(columns="sold")
learn = table.sample(frac=0.8, random_state=1)
held = table.drop(learn.index)
numbers = ["age", "km", "power", "owners"]
texts = ["make", "fuel", "town"]
categories = pd.get_dummies(learn[texts]).columns


def encode(rows):
    x = ((rows[numbers] - learn[numbers].mean()) / learn[numbers].std()).fillna(0)
    missing = rows[numbers].isna().add_suffix(" missing")
    dummies = pd.get_dummies(rows[texts]).reindex(columns=categories, fill_value=0)
    x = pd.concat([x, missing, dummies], axis=1).to_numpy("float32")
    y = (rows[["price"]] - learn["price"].mean()) / learn["price"].std()
    return TensorDataset(torch.tensor(x, device=device), torch.tensor(y.to_numpy("float32"), device=device))


train, test = encode(learn), encode(held)
model = nn.Sequential(nn.Linear(train[0][0].numel(), 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)

best, patience = float("inf"), 0
for epoch in range(100):
    model.train()
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        x, y = test.tensors
        loss = nn.functional.mse_loss(model(x), y).item()
    if loss < best:
        best, patience, weights = loss, 0, copy.deepcopy(model.state_dict())
    else:
        patience += 1
        if patience == 8:
            break

model.load_state_dict(weights)
with torch.no_grad():
    x, y = test.tensors
    wrong = model(x) - y
r2 = 1 - wrong.square().sum() / (y - y.mean()).square().sum()
print(f"R2 {r2:.3f}, mean error {wrong.abs().mean() * learn['price'].std():.0f}")

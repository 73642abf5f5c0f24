import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

df = pd.read_csv("house_prices.csv")
X = StandardScaler().fit_transform(df.drop(columns="price").values).astype(np.float32)
y = np.log1p(df["price"].values).astype(np.float32)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_net(d):
    return nn.Sequential(nn.Linear(d, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))


net = make_net(X.shape[1]).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
scores = []

for fold, (tr, va) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
    net = make_net(X.shape[1]).to(device)
    train_dl = DataLoader(TensorDataset(torch.from_numpy(X[tr]), torch.from_numpy(y[tr])), batch_size=64, shuffle=True)
    xv = torch.from_numpy(X[va]).to(device)
    yv = torch.from_numpy(y[va]).to(device)
    for epoch in range(50):
        net.train()
        for xb, yb in train_dl:
            xb, yb = xb.to(device), yb.to(device)
            optimizer.zero_grad()
            loss = loss_fn(net(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        rmse = loss_fn(net(xv).squeeze(1), yv).sqrt().item()
    scores.append(rmse)
    print("fold", fold, "rmse", rmse)

print("cv", np.mean(scores), np.std(scores))

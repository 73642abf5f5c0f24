import pandas as pd
import torch
from torch import nn

df = pd.read_csv("housing.csv")
X = torch.tensor(df.drop(columns=["price"]).values, dtype=torch.float32)
y = torch.tensor(df["price"].values, dtype=torch.float32).view(-1, 1)
X = (X - X.mean(0)) / X.std(0)
y = (y - y.mean()) / y.std()


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.l1 = nn.Linear(X.shape[1], 64)
        self.l2 = nn.Linear(64, 64)
        self.l3 = nn.Linear(64, 1)

    def forward(self, x):
        x = torch.relu(self.l1(x))
        x = torch.relu(self.l2(x))
        return self.l3(x)


net = Net()
loss_fn = nn.MSELoss()
optim = torch.optim.SGD(net.parameters(), lr=0.01)

for t in range(500):
    y_pred = net(X)
    loss = loss_fn(y_pred, y)
    if t % 50 == 0:
        print(t, loss.item())
    loss.backward()
    optim.step()

print("done")

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from corpus import SkipGrams

device = torch.device("cuda:0")


class SGNS(nn.Module):
    def __init__(self, n, d=100):
        super().__init__()
        self.u = nn.Embedding(n, d)
        self.v = nn.Embedding(n, d)

    def forward(self, c, pos, neg):
        e = self.u(c)
        p = (e * self.v(pos)).sum(1).sigmoid().log()
        q = torch.bmm(self.v(neg), -e.unsqueeze(2)).squeeze(2).sigmoid().log().sum(1)
        return -(p + q).mean()


net = SGNS(50000).to(device)
optim = torch.optim.Adagrad(net.parameters(), lr=0.05)
loader = DataLoader(SkipGrams(), batch_size=4096, shuffle=True, num_workers=3)
per_epoch = []
for epoch in range(5):
    losses = []
    for c, pos, neg in loader:
        c, pos, neg = c.to(device), pos.to(device), neg.to(device)
        loss = net(c, pos, neg)
        optim.zero_grad()
        loss.backward()
        optim.step()
        losses.append(loss)
    per_epoch.append(sum(losses) / len(losses))
    print(epoch, per_epoch[-1].item())

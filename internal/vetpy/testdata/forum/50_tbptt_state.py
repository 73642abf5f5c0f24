import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, vocab, n=512):
        super().__init__()
        self.e = nn.Embedding(vocab, n)
        self.g = nn.GRU(n, n, 2, batch_first=True)
        self.o = nn.Linear(n, vocab)
        self.state = None

    def forward(self, x):
        y, self.state = self.g(self.e(x), self.state)
        return self.o(y)


def batches(ids, bs, bptt):
    n = len(ids) // bs
    ids = ids[:n * bs].view(bs, n)
    for i in range(0, n - bptt - 1, bptt):
        yield ids[:, i:i + bptt], ids[:, i + 1:i + bptt + 1]


ids = torch.load("ids.pt")
net = Net(10000).cuda()
opt = torch.optim.SGD(net.parameters(), lr=1.0)
for ep in range(40):
    for x, y in batches(ids, 20, 35):
        x, y = x.cuda(), y.cuda()
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x).transpose(1, 2), y)
        loss.backward(retain_graph=True)
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        opt.step()

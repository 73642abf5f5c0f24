import numpy as np
import torch

x = torch.from_numpy(np.linspace(-1, 1, 200)).float().view(-1, 1)
y = 3 * x + 0.7 + 0.1 * torch.randn_like(x)
w = torch.randn(1, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
opt = torch.optim.SGD([w, b], lr=0.05)
for i in range(2000):
    pred = x @ w + b
    mse = ((pred - y) ** 2).mean()
    mse.backward()
    opt.step()
    if i % 200 == 0:
        print(i, mse.item(), w.item(), b.item())

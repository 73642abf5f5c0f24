import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class PINN(nn.Module):
    def __init__(self, width=20, depth=8):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def residual(net, x, t, nu=0.01 / np.pi):
    u = net(x, t)
    one = torch.ones_like(u)
    u_t, = torch.autograd.grad(u, t, one, create_graph=True)
    u_x, = torch.autograd.grad(u, x, one, create_graph=True)
    u_xx, = torch.autograd.grad(u_x, x, one, create_graph=True)
    return u_t + u * u_x - nu * u_xx


net = PINN().to(device)
xf = (2 * torch.rand(10000, 1, device=device) - 1).requires_grad_(True)
tf = torch.rand(10000, 1, device=device).requires_grad_(True)
x0 = torch.linspace(-1, 1, 200, device=device).unsqueeze(1)
t0 = torch.zeros_like(x0)
u0 = -torch.sin(np.pi * x0)
tb = torch.rand(200, 1, device=device)
xb = torch.ones_like(tb)


def total_loss():
    ic = ((net(x0, t0) - u0) ** 2).mean()
    bc = (net(xb, tb) ** 2).mean() + (net(-xb, tb) ** 2).mean()
    return ic + bc + (residual(net, xf, tf) ** 2).mean()


adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for it in range(5000):
    adam.zero_grad()
    loss = total_loss()
    loss.backward()
    adam.step()
    if it % 500 == 0:
        print("adam", it, loss.item())

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=500, history_size=50, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = total_loss()
    loss.backward()
    return loss


for outer in range(10):
    loss = lbfgs.step(closure)
    print("lbfgs", outer, loss.item())
torch.save(net.state_dict(), "burgers.pt")

# notebook -> script
# In[1]:
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

# In[2]:
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.linspace(-3, 3, 20000).unsqueeze(1)
y = torch.sin(2 * x) + 0.3 * x ** 2 + 0.1 * torch.randn_like(x)
train_dl = DataLoader(TensorDataset(x, y), batch_size=2048, shuffle=True, pin_memory=True)

# In[3]:
net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()

# In[4]:
curve = []
for epoch in range(300):
    net.train()
    s = torch.zeros((), device=device)
    for xb, yb in train_dl:
        xb, yb = xb.to(device, non_blocking=True), yb.to(device, non_blocking=True)
        opt.zero_grad()
        loss = loss_fn(net(xb), yb)
        loss.backward()
        opt.step()
        s += loss.detach()
    curve.append(s / len(train_dl))
    if epoch % 50 == 0:
        print(epoch, curve[-1].item())

# In[5]:
net.eval()
with torch.no_grad():
    pred = net(x.to(device)).cpu()
fig, ax = plt.subplots(1, 2, figsize=(10, 4))
ax[0].semilogy(torch.stack(curve).cpu().numpy())
ax[1].plot(x.numpy(), y.numpy(), ".", alpha=0.05)
ax[1].plot(x.numpy(), pred.numpy())
plt.savefig("fit.png")

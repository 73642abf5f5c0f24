import random

import torch
import torch.nn.functional as F

device = "cuda"
net = torch.nn.Linear(8, 4).to(device)
optimizer = torch.optim.Adam(net.parameters())
memory = []


def learn():
    batch = random.sample(memory, 64)
    states = torch.stack([torch.tensor(s).to(device) for s, _ in batch])  # want: V26
    actions = torch.tensor([a for _, a in batch], device=device)
    loss = F.cross_entropy(net(states), actions)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for step in range(1000):
    learn()

import random
from collections import deque

import gymnasium as gym
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")
env = gym.make("LunarLander-v2")
q = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 4)).to(device)
target = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 4)).to(device)
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=5e-4)
buf = deque(maxlen=100000)


def learn():
    batch = random.sample(buf, 64)
    s = torch.stack([torch.tensor(b[0]).to(device) for b in batch])
    a = torch.tensor([b[1] for b in batch], device=device)
    r = torch.tensor([b[2] for b in batch], device=device)
    s2 = torch.stack([torch.tensor(b[3]).to(device) for b in batch])
    with torch.no_grad():
        y = r + 0.99 * target(s2).max(1).values
    loss = F.mse_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


for ep in range(1000):
    s, _ = env.reset()
    done = False
    while not done:
        if random.random() < 0.1:
            a = env.action_space.sample()
        else:
            with torch.no_grad():
                a = q(torch.as_tensor(s, device=device)).argmax().item()
        s2, r, term, trunc, _ = env.step(a)
        buf.append((s, a, r, s2))
        s = s2
        done = term or trunc
        if len(buf) > 1000:
            learn()
    if ep % 10 == 0:
        target.load_state_dict(q.state_dict())

import random

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")


class Replay:
    def __init__(self, n, obs):
        self.s, self.s2 = np.zeros((n, obs), np.float32), np.zeros((n, obs), np.float32)
        self.a, self.r, self.d = np.zeros(n, np.int64), np.zeros(n, np.float32), np.zeros(n, np.float32)
        self.n, self.i, self.full = n, 0, False

    def add(self, *x):
        self.s[self.i], self.a[self.i], self.r[self.i], self.s2[self.i], self.d[self.i] = x
        self.i = (self.i + 1) % self.n
        self.full |= self.i == 0

    def sample(self, k):
        j = np.random.randint(0, self.n if self.full else self.i, k)
        return [torch.as_tensor(v[j], device=device) for v in (self.s, self.a, self.r, self.s2, self.d)]


def mlp():
    return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2)).to(device)


env, q, tgt = gym.make("CartPole-v1"), mlp(), mlp()
tgt.load_state_dict(q.state_dict())
opt, buf, eps = torch.optim.Adam(q.parameters(), lr=1e-3), Replay(50000, 4), 1.0
s, _ = env.reset()
for step in range(100000):
    if random.random() < eps:
        a = env.action_space.sample()
    else:
        with torch.no_grad():
            a = q(torch.as_tensor(s, device=device)).argmax().item()
    s2, r, term, trunc, _ = env.step(a)
    buf.add(s, a, r, s2, term)
    s = env.reset()[0] if term or trunc else s2
    eps = max(0.05, eps - 2e-5)
    if step > 1000:
        bs, ba, br, bs2, bd = buf.sample(128)
        with torch.no_grad():
            y = br + 0.99 * (1 - bd) * tgt(bs2).max(1).values
        loss = F.smooth_l1_loss(q(bs).gather(1, ba[:, None]).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if step % 500 == 0:
        tgt.load_state_dict(q.state_dict())

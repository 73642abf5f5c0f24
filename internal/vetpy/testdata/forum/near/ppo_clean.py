import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

device = torch.device("cuda")


class AC(nn.Module):
    def __init__(self, o, a):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(o, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, a), nn.Linear(64, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(8)])
net = AC(4, 2).to(device)
opt = torch.optim.Adam(net.parameters(), lr=2.5e-4, eps=1e-5)
obs, _ = envs.reset(seed=0)
T, gamma, lam = 128, 0.99, 0.95

for update in range(500):
    O = torch.zeros(T, 8, 4, device=device)
    A, LP, R, D, V = (torch.zeros(T, 8, device=device) for _ in range(5))
    for t in range(T):
        o = torch.as_tensor(obs, dtype=torch.float32, device=device)
        with torch.no_grad():
            dist, v = net(o)
            a = dist.sample()
        O[t], A[t], LP[t], V[t] = o, a, dist.log_prob(a), v
        obs, rew, term, trunc, _ = envs.step(a.cpu().numpy())
        R[t] = torch.as_tensor(rew, dtype=torch.float32, device=device)
        D[t] = torch.as_tensor(np.logical_or(term, trunc), dtype=torch.float32, device=device)
    with torch.no_grad():
        nxt = net(torch.as_tensor(obs, dtype=torch.float32, device=device))[1]
    adv, last = torch.zeros_like(R), torch.zeros(8, device=device)
    for t in reversed(range(T)):
        delta = R[t] + gamma * nxt * (1 - D[t]) - V[t]
        last = delta + gamma * lam * (1 - D[t]) * last
        adv[t], nxt = last, V[t]
    ret = (adv + V).flatten()
    O_, A_, LP_, adv_ = O.flatten(0, 1), A.flatten(), LP.flatten(), adv.flatten()
    for _ in range(4):
        for idx in torch.randperm(T * 8, device=device).split(256):
            dist, v = net(O_[idx])
            ratio = (dist.log_prob(A_[idx]) - LP_[idx]).exp()
            a_ = (adv_[idx] - adv_[idx].mean()) / (adv_[idx].std() + 1e-8)
            loss = -torch.min(ratio * a_, ratio.clamp(0.8, 1.2) * a_).mean() + 0.5 * (v - ret[idx]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
    if update % 10 == 0:
        print(update, D.sum().item())

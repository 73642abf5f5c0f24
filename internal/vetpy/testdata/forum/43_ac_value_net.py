import gymnasium as gym
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, act))

    def forward(self, s):
        return Categorical(logits=self.fc(s))


class Critic(nn.Module):
    def __init__(self, obs):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, s):
        return self.fc(s).squeeze(-1)


env = gym.make("CartPole-v1")
policy = Policy(4, 2)
critic = Critic(4)
optim = torch.optim.Adam(policy.parameters(), lr=1e-3)

for episode in range(1000):
    s, _ = env.reset()
    logp, values, rewards = [], [], []
    done = False
    while not done:
        st = torch.as_tensor(s, dtype=torch.float32)
        dist = policy(st)
        a = dist.sample()
        logp.append(dist.log_prob(a))
        values.append(critic(st))
        s, r, term, trunc, _ = env.step(a.item())
        rewards.append(r)
        done = term or trunc
    ret, g = [], 0.0
    for r in reversed(rewards):
        g = r + 0.99 * g
        ret.insert(0, g)
    ret = torch.tensor(ret)
    v = torch.stack(values)
    adv = ret - v
    loss = -(torch.stack(logp) * adv.detach()).mean() + adv.pow(2).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()

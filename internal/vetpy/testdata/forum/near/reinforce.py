import gymnasium as gym
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.2), nn.ReLU(), nn.Linear(128, 2))
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return self.net(x)


env = gym.make("CartPole-v1")
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    dist = Categorical(logits=policy(torch.from_numpy(state).float().unsqueeze(0)))
    action = dist.sample()
    policy.saved_log_probs.append(dist.log_prob(action))
    return action.item()


def finish_episode(gamma=0.99):
    R, returns = 0.0, []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.cat(policy.saved_log_probs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.rewards.clear()
    policy.saved_log_probs.clear()


running = 10.0
for ep in range(2000):
    state, _ = env.reset()
    total = 0.0
    for t in range(500):
        state, reward, term, trunc, _ = env.step(select_action(state))
        policy.rewards.append(reward)
        total += reward
        if term or trunc:
            break
    running = 0.05 * total + 0.95 * running
    finish_episode()
    if ep % 10 == 0:
        print(ep, running)

import random
from collections import deque, namedtuple

import gymnasium as gym
import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward next_state done q")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class QNet(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, n_act))

    def forward(self, x):
        return self.net(x)


class Agent:
    def __init__(self, env, gamma=0.99, lr=1e-3):
        self.env = env
        self.gamma = gamma
        self.q = QNet(env.observation_space.shape[0], env.action_space.n).to(device)
        self.target = QNet(env.observation_space.shape[0], env.action_space.n).to(device)
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.AdamW(self.q.parameters(), lr=lr)
        self.memory = deque(maxlen=50000)
        self.eps = 1.0

    def act(self, state):
        s = torch.as_tensor(state, dtype=torch.float32, device=device)
        qs = self.q(s)
        if random.random() < self.eps:
            return self.env.action_space.sample(), qs
        return int(qs.argmax()), qs

    def learn(self, bs=64):
        if len(self.memory) < 1000:
            return
        batch = Transition(*zip(*random.sample(self.memory, bs)))
        s = torch.tensor(batch.state, dtype=torch.float32, device=device)
        a = torch.tensor(batch.action, device=device).unsqueeze(1)
        r = torch.tensor(batch.reward, dtype=torch.float32, device=device)
        s2 = torch.tensor(batch.next_state, dtype=torch.float32, device=device)
        d = torch.tensor(batch.done, dtype=torch.float32, device=device)
        q = self.q(s).gather(1, a).squeeze(1)
        with torch.no_grad():
            y = r + self.gamma * (1 - d) * self.target(s2).max(1).values
        loss = F.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


env = gym.make("CartPole-v1")
agent = Agent(env)
for ep in range(600):
    state, _ = env.reset()
    total = 0.0
    while True:
        action, qs = agent.act(state)
        nxt, reward, term, trunc, _ = env.step(action)
        agent.memory.append(Transition(state.tolist(), action, reward, nxt.tolist(), float(term), qs))
        agent.learn()
        state, total = nxt, total + reward
        if term or trunc:
            break
    agent.eps = max(0.05, agent.eps * 0.99)
    if ep % 10 == 0:
        agent.target.load_state_dict(agent.q.state_dict())
        print(ep, total)

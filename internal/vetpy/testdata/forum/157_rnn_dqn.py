"""
Recurrent DQN for POMDP CartPole (velocities hidden). Runs on CPU, the net is tiny.
RAM goes up until the OOM killer comes after ~2 hours. Buffer is only 50k transitions!
"""
import random
from collections import deque, namedtuple

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Step = namedtuple("Step", "obs hid act rew nobs nhid done")


class QNet(nn.Module):
    def __init__(self, n_obs, n_act, h=64):
        super().__init__()
        self.h = h
        self.enc = nn.Linear(n_obs, h)
        self.gru = nn.GRUCell(h, h)
        self.q = nn.Linear(h, n_act)

    def forward(self, o, hid):
        hid = self.gru(F.relu(self.enc(o)), hid)
        return self.q(hid), hid


class Agent:
    def __init__(self, n_obs, n_act):
        self.net, self.target = QNet(n_obs, n_act), QNet(n_obs, n_act)
        self.target.load_state_dict(self.net.state_dict())
        self.target.eval()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-4)
        self.memory = deque(maxlen=50_000)
        self.n_act = n_act
        self.eps = 1.0

    def act(self, obs, hid):
        q, new_hid = self.net(obs, hid)
        if random.random() < self.eps:
            return random.randrange(self.n_act), new_hid
        return int(q.argmax(1)), new_hid

    def remember(self, *args):
        self.memory.append(Step(*args))

    def learn(self, batch_size=64, gamma=0.99):
        if len(self.memory) < 1000:
            return
        b = Step(*zip(*random.sample(self.memory, batch_size)))
        obs, nobs = torch.cat(b.obs), torch.cat(b.nobs)
        hid, nhid = torch.cat(b.hid).detach(), torch.cat(b.nhid).detach()
        act = torch.tensor(b.act).unsqueeze(1)
        rew = torch.tensor(b.rew, dtype=torch.float32)
        done = torch.tensor(b.done, dtype=torch.float32)
        q = self.net(obs, hid)[0].gather(1, act).squeeze(1)
        with torch.no_grad():
            nq = self.target(nobs, nhid)[0].max(1).values
        loss = F.smooth_l1_loss(q, rew + gamma * nq * (1 - done))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def observe(o):
    return torch.from_numpy(np.asarray(o, dtype=np.float32)[[0, 2]]).unsqueeze(0)


def main():
    env = gym.make("CartPole-v1")
    agent = Agent(2, env.action_space.n)
    for ep in range(3000):
        o, _ = env.reset(seed=ep)
        obs, hid, ret, over = observe(o), torch.zeros(1, 64), 0.0, False
        while not over:
            a, nhid = agent.act(obs, hid)
            o, r, term, trunc, _ = env.step(a)
            nobs = observe(o)
            agent.remember(obs, hid, a, r, nobs, nhid, term)
            agent.learn()
            obs, hid, ret, over = nobs, nhid, ret + r, term or trunc
        agent.eps = max(0.05, agent.eps * 0.995)
        if ep % 10 == 0:
            agent.target.load_state_dict(agent.net.state_dict())
            print(ep, "return", ret)


if __name__ == "__main__":
    main()

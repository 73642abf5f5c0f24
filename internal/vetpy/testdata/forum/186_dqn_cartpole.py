import random
from collections import deque

import gym
import torch
import torch.nn as nn
import torch.nn.functional as F

ENV_NAME = "LunarLander-v2"
GAMMA = 0.99
BATCH_SIZE = 128
MEMORY_SIZE = 100_000
TARGET_UPDATE = 500
NUM_EPISODES = 1500

device = torch.device("cuda")


class QNet(nn.Module):
    def __init__(self, n_obs, n_act):
        super(QNet, self).__init__()
        self.fc1 = nn.Linear(n_obs, 256)
        self.fc2 = nn.Linear(256, 256)
        self.out = nn.Linear(256, n_act)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.out(x)


env = gym.make(ENV_NAME)
n_obs = env.observation_space.shape[0]
n_act = env.action_space.n

policy_net = QNet(n_obs, n_act).to(device)
target_net = QNet(n_obs, n_act).to(device)
target_net.load_state_dict(policy_net.state_dict())
target_net.eval()
optimizer = torch.optim.Adam(policy_net.parameters(), lr=5e-4)
memory = deque(maxlen=MEMORY_SIZE)
eps = 1.0
steps_done = 0


def optimize():
    batch = random.sample(memory, BATCH_SIZE)
    states, next_states = [], []
    for state, action, reward, next_state, done, _ in batch:
        states.append(torch.tensor(state, dtype=torch.float32).to(device))
        next_states.append(torch.tensor(next_state, dtype=torch.float32).to(device))
    states = torch.stack(states)
    next_states = torch.stack(next_states)
    actions = torch.tensor([b[1] for b in batch], device=device)
    rewards = torch.tensor([b[2] for b in batch], dtype=torch.float32, device=device)
    dones = torch.tensor([b[4] for b in batch], dtype=torch.float32, device=device)

    q = policy_net(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        target = rewards + GAMMA * (1 - dones) * target_net(next_states).max(1).values
    loss = F.smooth_l1_loss(q, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for episode in range(NUM_EPISODES):
    state, _ = env.reset()
    done = False
    score = 0.0
    while not done:
        obs = torch.as_tensor(state, dtype=torch.float32, device=device).unsqueeze(0)
        q_values = policy_net(obs)
        if random.random() < eps:
            action = env.action_space.sample()
        else:
            action = int(q_values.argmax(dim=1))
        next_state, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        # keep the q values as well, i want to use them as priority later
        memory.append((state, action, reward, next_state, terminated, q_values))
        state = next_state
        score += reward
        steps_done += 1
        if len(memory) >= BATCH_SIZE:
            optimize()
        if steps_done % TARGET_UPDATE == 0:
            target_net.load_state_dict(policy_net.state_dict())
    eps = max(0.05, eps * 0.995)
    print("Episode %d, score %.1f, eps %.2f" % (episode, score, eps))

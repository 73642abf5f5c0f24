import argparse

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

device = torch.device("cuda")


class ActorCritic(nn.Module):
    def __init__(self, n_actions):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
                                  nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.pi = nn.Linear(512, n_actions)
        self.v = nn.Linear(512, 1)

    def forward(self, x):
        h = self.body(x / 255.0)
        return self.pi(h), self.v(h).squeeze(-1)


def returns_of(rewards, dones, last_v, gamma):
    out, R = [], last_v
    for r, d in zip(reversed(rewards), reversed(dones)):
        R = r + gamma * R * (1 - d)
        out.insert(0, R)
    return torch.stack(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--updates", type=int, default=100000)
    p.add_argument("--n_steps", type=int, default=5)
    p.add_argument("--n_envs", type=int, default=16)
    args = p.parse_args()

    envs = gym.make_vec("ALE/Pong-v5", num_envs=args.n_envs, wrappers=[lambda e: gym.wrappers.FrameStackObservation(e, 4)])
    net = ActorCritic(envs.single_action_space.n).to(device)
    opt = torch.optim.RMSprop(net.parameters(), lr=7e-4, eps=1e-5)
    obs, _ = envs.reset(seed=0)
    value_history = []

    for update in range(args.updates):
        log_probs, values, rewards, dones, ents = [], [], [], [], []
        for _ in range(args.n_steps):
            logits, value = net(torch.as_tensor(obs, dtype=torch.float32, device=device))
            dist = Categorical(logits=logits)
            action = dist.sample()
            obs, rew, term, trunc, _ = envs.step(action.cpu().numpy())
            log_probs.append(dist.log_prob(action))
            values.append(value)
            ents.append(dist.entropy())
            rewards.append(torch.as_tensor(rew, dtype=torch.float32, device=device))
            dones.append(torch.as_tensor(np.logical_or(term, trunc), dtype=torch.float32, device=device))

        with torch.no_grad():
            _, last_v = net(torch.as_tensor(obs, dtype=torch.float32, device=device))
        ret = returns_of(rewards, dones, last_v, 0.99)
        v = torch.stack(values)
        adv = ret - v
        loss = -(torch.stack(log_probs) * adv.detach()).mean() + 0.5 * adv.pow(2).mean() - 0.01 * torch.stack(ents).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()

        value_history.append(v.mean())
        if update % 500 == 0:
            print(update, "value", torch.stack(value_history[-100:]).mean().item())


if __name__ == "__main__":
    main()

"""PPO on the CPU for CartPole. Stored tensors are made under no_grad; .item() costs nothing here since
nothing is on a GPU. Several backwards, each with its own step."""
import argparse

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(n_obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n_act))
        self.v = nn.Sequential(nn.Linear(n_obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    @torch.no_grad()
    def act(self, obs):
        dist = Categorical(logits=self.pi(obs))
        a = dist.sample()
        return a, dist.log_prob(a), self.v(obs).squeeze(-1)

    def evaluate(self, obs, act):
        dist = Categorical(logits=self.pi(obs))
        return dist.log_prob(act), dist.entropy(), self.v(obs).squeeze(-1)


def gae(rewards, values, dones, last, gamma=0.99, lam=0.95):
    adv = torch.zeros_like(rewards)
    run = 0.0
    for t in reversed(range(len(rewards))):
        nxt = last if t == len(rewards) - 1 else values[t + 1]
        delta = rewards[t] + gamma * nxt * (1 - dones[t]) - values[t]
        run = delta + gamma * lam * (1 - dones[t]) * run
        adv[t] = run
    return adv, adv + values


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=200)
    ap.add_argument("--horizon", type=int, default=2048)
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--clip", type=float, default=0.2)
    args = ap.parse_args()

    env = gym.make("CartPole-v1")
    agent = Agent(env.observation_space.shape[0], env.action_space.n)
    opt = torch.optim.Adam(agent.parameters(), lr=3e-4)
    obs, _ = env.reset(seed=0)
    ep_ret, returns = 0.0, []
    for update in range(args.updates):
        buf = []
        for _ in range(args.horizon):
            o = torch.as_tensor(obs, dtype=torch.float32)
            a, logp, v = agent.act(o)
            obs, r, term, trunc, _ = env.step(a.item())
            buf.append((o, a, logp, v, torch.tensor(float(r)), torch.tensor(float(term or trunc))))
            ep_ret += r
            if term or trunc:
                returns.append(ep_ret)
                ep_ret = 0.0
                obs, _ = env.reset()
        o, a, logp, v, r, d = (torch.stack(c) for c in zip(*buf))
        _, _, last = agent.act(torch.as_tensor(obs, dtype=torch.float32))
        adv, ret = gae(r, v, d, last)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)

        for _ in range(args.epochs):
            for idx in torch.randperm(args.horizon).split(64):
                new_logp, ent, val = agent.evaluate(o[idx], a[idx])
                ratio = (new_logp - logp[idx]).exp()
                pg = -torch.min(ratio * adv[idx], ratio.clamp(1 - args.clip, 1 + args.clip) * adv[idx]).mean()
                loss = pg + 0.5 * (val - ret[idx]).pow(2).mean() - 0.01 * ent.mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                opt.step()
        print(f"update {update} return {np.mean(returns[-20:]):.1f}")


if __name__ == "__main__":
    main()

"""A2C on vectorised Atari. Based on several tutorials."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

from atari_wrappers import make_vec_env


class ActorCritic(nn.Module):
    def __init__(self, n_act):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.actor = nn.Linear(512, n_act)
        self.critic = nn.Linear(512, 1)

    def forward(self, obs):
        h = self.body(obs.float() / 255.0)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--env", default="PongNoFrameskip-v4")
    p.add_argument("--n-envs", type=int, default=16)
    p.add_argument("--n-steps", type=int, default=5)
    p.add_argument("--updates", type=int, default=125000)
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--ent", type=float, default=0.01)
    p.add_argument("--lr", type=float, default=7e-4)
    return p.parse_args()


def main():
    args = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    envs = make_vec_env(args.env, args.n_envs)
    model = ActorCritic(envs.single_action_space.n).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr, eps=1e-5, alpha=0.99)

    obs, _ = envs.reset()
    ep_return = np.zeros(args.n_envs)
    finished = []
    for update in range(args.updates):
        log_probs, values, rewards, masks, entropies = [], [], [], [], []
        for _ in range(args.n_steps):
            dist, value = model(torch.as_tensor(np.asarray(obs), device=device))
            action = dist.sample()
            obs, reward, term, trunc, _ = envs.step(action.cpu().numpy())
            done = np.logical_or(term, trunc)
            log_probs.append(dist.log_prob(action))
            entropies.append(dist.entropy())
            values.append(value)
            rewards.append(reward)
            masks.append(1.0 - done)
            ep_return += reward
            for k in np.nonzero(done)[0]:
                finished.append(ep_return[k])
                ep_return[k] = 0.0

        with torch.no_grad():
            _, ret = model(torch.as_tensor(np.asarray(obs), device=device))
        rewards = torch.as_tensor(np.stack(rewards), dtype=torch.float32, device=device)
        masks = torch.as_tensor(np.stack(masks), dtype=torch.float32, device=device)
        returns = []
        for t in reversed(range(args.n_steps)):
            ret = rewards[t] + args.gamma * masks[t] * ret
            returns.insert(0, ret)
        returns = torch.stack(returns)
        values, log_probs = torch.stack(values), torch.stack(log_probs)
        entropy = torch.stack(entropies).mean()

        adv = returns - values
        critic_loss = adv.pow(2).mean()
        actor_loss = -(log_probs * adv.detach()).mean()
        loss = actor_loss + 0.5 * critic_loss - args.ent * entropy

        optimizer.zero_grad()
        critic_loss.backward(retain_graph=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()

        if update % 1000 == 0 and finished:
            print("update %d mean return %.2f" % (update, np.mean(finished[-100:])))
    torch.save(model.state_dict(), "a2c.pt")


if __name__ == "__main__":
    main()

"""REINFORCE on LunarLander, CPU policy. Log-probs are kept with their graph on purpose until the episode ends."""
import gymnasium as gym
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 128), nn.ReLU(), nn.Linear(128, n_act))
        self.log_probs = []
        self.rewards = []

    def act(self, obs):
        dist = Categorical(logits=self.net(torch.as_tensor(obs, dtype=torch.float32)))
        a = dist.sample()
        self.log_probs.append(dist.log_prob(a))
        return a.item()

    def reset(self):
        self.log_probs.clear()
        self.rewards.clear()


def returns(rewards, gamma=0.99):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.append(g)
    out = torch.tensor(out[::-1])
    return (out - out.mean()) / (out.std() + 1e-8)


def finish_episode(policy, opt):
    loss = -(torch.stack(policy.log_probs) * returns(policy.rewards)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    policy.reset()


def main():
    env = gym.make("LunarLander-v2")
    policy = Policy(env.observation_space.shape[0], env.action_space.n)
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    avg = -200.0
    for episode in range(3000):
        obs, _ = env.reset()
        total, done = 0.0, False
        while not done:
            obs, r, term, trunc, _ = env.step(policy.act(obs))
            policy.rewards.append(float(r))
            total += float(r)
            done = term or trunc
        finish_episode(policy, opt)
        avg = 0.95 * avg + 0.05 * total
        if episode % 25 == 0:
            print(f"episode {episode} return {total:.1f} avg {avg:.1f}")
        if avg > 200:
            torch.save(policy.state_dict(), "lander.pt")
            break


if __name__ == "__main__":
    main()

import gymnasium as gym
import torch
import torch.nn as nn
from torch.distributions import Categorical

device = torch.device("cuda")


class ActorCritic(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, act))
        self.v = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, x):
        return Categorical(logits=self.pi(x)), self.v(x).squeeze(-1)


def rollout(env, net, n):
    obs_buf, act_buf, logp_buf, rew_buf, done_buf = [], [], [], [], []
    obs, _ = env.reset()
    for _ in range(n):
        o = torch.as_tensor(obs, dtype=torch.float32, device=device)
        dist, _ = net(o)
        a = dist.sample()
        obs2, r, term, trunc, _ = env.step(a.cpu().numpy())
        obs_buf.append(o)
        act_buf.append(a)
        logp_buf.append(dist.log_prob(a))
        rew_buf.append(r)
        done_buf.append(term or trunc)
        obs = env.reset()[0] if (term or trunc) else obs2
    return torch.stack(obs_buf), torch.stack(act_buf), torch.stack(logp_buf), rew_buf, done_buf


def returns(rews, dones, gamma=0.99):
    out, g = [], 0.0
    for r, d in zip(reversed(rews), reversed(dones)):
        g = r + gamma * g * (1 - float(d))
        out.append(g)
    return torch.tensor(out[::-1], dtype=torch.float32, device=device)


env = gym.make("CartPole-v1")
net = ActorCritic(4, 2).to(device)
opt = torch.optim.Adam(net.parameters(), lr=3e-4)
for it in range(300):
    obs, act, old_logp, rews, dones = rollout(env, net, 2048)
    ret = returns(rews, dones)
    for _ in range(10):
        dist, v = net(obs)
        adv = (ret - v).detach()
        ratio = (dist.log_prob(act) - old_logp).exp()
        pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
        loss = pg + 0.5 * (ret - v).pow(2).mean() - 0.01 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
    print(it, sum(rews) / max(1, sum(dones)))

import torch
import torch.nn as nn


class PPO:
    def __init__(self, actor_critic, lr=3e-4, clip=0.2, device="cuda"):
        self.ac = actor_critic.to(device)
        self.opt = torch.optim.Adam(self.ac.parameters(), lr=lr, eps=1e-5)
        self.clip = clip
        self.device = device

    def update(self, rollouts, epochs=4, mb=256):
        v_epoch, a_epoch = 0, 0
        for _ in range(epochs):
            for batch in rollouts.feed_forward_generator(mb):
                obs, act, old, ret, adv = [t.to(self.device) for t in batch]
                value, logp, ent = self.ac.evaluate(obs, act)
                ratio = torch.exp(logp - old)
                surr = torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
                a_loss = -surr.mean()
                v_loss = 0.5 * (ret - value).pow(2).mean()
                self.opt.zero_grad()
                (a_loss + 0.5 * v_loss - 0.01 * ent).backward()
                nn.utils.clip_grad_norm_(self.ac.parameters(), 0.5)
                self.opt.step()
                v_epoch += v_loss.item()
                a_epoch += a_loss.item()
        return v_epoch, a_epoch

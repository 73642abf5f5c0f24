import torch
import torch.nn as nn


class Runner(object):
    def __init__(self, net, train_iter, valid_iter, device="cuda"):
        self.net = net.to(device)
        self.train_iter = train_iter
        self.valid_iter = valid_iter
        self.device = device
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)
        self.crit = nn.SmoothL1Loss()
        self.history = {"loss": [], "pred": []}
        self.total = 0

    def _step(self, x, y):
        y_hat = self.net(x)
        loss = self.crit(y_hat, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss, y_hat

    def train(self, n):
        for ep in range(n):
            self.net.train()
            for x, y in self.train_iter:
                x = x.to(self.device)
                y = y.to(self.device)
                loss, y_hat = self._step(x, y)
                self.history["loss"].append(loss)
                self.total = self.total + loss
            print("epoch %d" % ep)

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        err = torch.zeros((), device=self.device)
        for x, y in self.valid_iter:
            err += self.crit(self.net(x.to(self.device)), y.to(self.device))
        return err.item() / len(self.valid_iter)

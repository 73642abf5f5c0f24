import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms as T


class Callback:
    def before_fit(self, learn): pass
    def before_epoch(self, learn): pass
    def after_loss(self, learn): pass
    def after_epoch(self, learn): pass


class Recorder(Callback):
    def before_fit(self, learn):
        self.losses, self.preds = [], []

    def after_loss(self, learn):
        if learn.training:
            self.losses.append(learn.loss.detach().cpu().numpy())

    def after_epoch(self, learn):
        print(f"epoch {learn.epoch} loss {sum(self.losses[-100:]) / 100:.4f}")


class Learner:
    def __init__(self, model, dls, loss_func, lr=1e-3, cbs=()):
        self.device = torch.device("cuda")
        self.model = model
        self.dls, self.loss_func, self.cbs = dls, loss_func, list(cbs)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.model.cuda()

    def __call__(self, name):
        for cb in self.cbs:
            getattr(cb, name)(self)

    def one_epoch(self, dl, training):
        self.training = training
        self.model.train(training)
        with torch.set_grad_enabled(training):
            for xb, yb in dl:
                xb = xb.to(self.device, non_blocking=True)
                yb = yb.to(self.device, non_blocking=True)
                self.loss = self.loss_func(self.model(xb), yb)
                self("after_loss")
                if training:
                    self.opt.zero_grad()
                    self.loss.backward()
                    self.opt.step()

    def fit(self, n):
        self("before_fit")
        for self.epoch in range(n):
            self("before_epoch")
            self.one_epoch(self.dls[0], True)
            self.one_epoch(self.dls[1], False)
            self("after_epoch")


if __name__ == "__main__":
    mk = lambda tr: DataLoader(datasets.FashionMNIST("data", train=tr, download=True, transform=T.ToTensor()), 256,
                               shuffle=tr, num_workers=4, pin_memory=True)
    net = nn.Sequential(nn.Conv2d(1, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.Flatten(),
                        nn.Linear(64 * 36, 10))
    Learner(net, (mk(True), mk(False)), nn.CrossEntropyLoss(), cbs=[Recorder()]).fit(5)

"""Gradients, steps, schedules and scalers, in order and out of it."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast

device = "cuda"
LIMIT = 1.0


def forgotten(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            opt.step()  # want: R07


def once_an_epoch(model, loader, optimizer):
    for epoch in range(3):
        optimizer.zero_grad()
        for x, y in loader:
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()  # want: R07


def one_step(model, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss


def in_functions(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        one_step(model, x.to(device), y.to(device))
        optimizer.step()  # near: R07


def by_hand(model, loader, optimizer):
    for x, y in loader:
        one_step(model, x.to(device), y.to(device))
        optimizer.step()  # near: R07
        for p in model.parameters():
            p.grad = None


def accumulated(model, loader, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x.to(device)), y.to(device)) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()  # near: V01 R07


def thrown_away(model, loader, optimizer):
    for x, y in loader:
        loss = F.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
        optimizer.zero_grad()  # want: V01
        optimizer.step()


class Thrower:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())

    def update(self, loss):
        loss.backward()
        self.optimizer.zero_grad()  # want: V01
        self.optimizer.step()

    def run(self, loader):
        for x, y in loader:
            self.update(F.mse_loss(self.model(x.to(device)), y.to(device)))


def behind(model, loader, optimizer):
    for x, y in loader:
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
        optimizer.zero_grad()  # near: V01


def clipped_late(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
        torch.nn.utils.clip_grad_value_(model.parameters(), LIMIT)  # want: V08


def clipped_early(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # want: V08
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()


def clipped(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # near: V08
        optimizer.step()


def clipped_for_two(g, d, loader, opt_g, opt_d):
    for x, y in loader:
        opt_d.zero_grad()
        F.mse_loss(d(x.to(device)), y.to(device)).backward()
        opt_d.step()
        opt_g.zero_grad()
        F.mse_loss(g(x.to(device)), y.to(device)).backward()
        torch.nn.utils.clip_grad_norm_(g.parameters(), LIMIT)  # near: V08
        opt_g.step()


def scheduled_early(model, loader, optimizer):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    for x, y in loader:
        scheduler.step()  # want: V09
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()


def scheduled_between(model, loader, optimizer, lr_scheduler):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        lr_scheduler.step()  # want: V09
        optimizer.step()


def scheduled(model, loader, optimizer, scheduler):
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
            scheduler.step()  # near: V09


def scheduled_by_epoch(model, loader, optimizer):
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    for epoch in range(3):
        worst = 0
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        plateau.step(worst)  # near: V09


def backward_inside(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.bfloat16):
            F.mse_loss(model(x.to(device)), y.to(device)).backward()  # want: V05
        optimizer.step()


def scaled_inside(model, loader, optimizer):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            scaler.scale(loss).backward()  # want: V05
        scaler.step(optimizer)
        scaler.update()


def right_order(model, loader, optimizer):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
        scaler.scale(loss).backward()  # near: V05
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # near: V07
        scaler.step(optimizer)  # near: V06
        scaler.update()


def either(model, loader, optimizer, scaler=None):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", enabled=scaler is not None):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
        if scaler is not None:
            scaler.scale(loss).backward()  # near: V05
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # near: V07
            scaler.step(optimizer)  # near: V06
            scaler.update()
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
            optimizer.step()


def never_updated(model, loader, optimizer):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # want: V06


def not_scaled(model, loader, optimizer):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()  # want: V06
        scaler.step(optimizer)
        scaler.update()


def clipped_scaled(model, loader, optimizer):
    grad_scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
        grad_scaler.scale(loss).backward()
        nn.utils.clip_grad_value_(model.parameters(), LIMIT)  # want: V07
        grad_scaler.step(optimizer)
        grad_scaler.update()


def unscaled_late(model, loader, optimizer):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # want: V07
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()


def named_only(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad  # want: V17
        loss = F.mse_loss(model(x.to(device)), y.to(device))
        loss.backward  # want: V17
        step = optimizer.step  # near: V17
        step()


def passed_on(model, optimizer, hooks):
    hooks.register(optimizer.step)  # near: V17
    model.size


def searched(model, loader):
    optimizer = torch.optim.LBFGS(model.parameters())
    for x, y in loader:
        x, y = x.to(device), y.to(device)

        def closure():
            optimizer.zero_grad()  # near: V01
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)  # near: R07

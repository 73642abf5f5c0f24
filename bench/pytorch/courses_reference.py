"""300 steps of each of torch.optim.lr_scheduler, with options, and of groups with schedules of their own.

    python courses_reference.py [--dir optim/testdata]

courses.safetensors, float64
    CASE [300]: the learning rate that step s, counted from 0, takes; CASE/momentum
    [300] where it is cycled. plateau figures [300] are what ReduceLROnPlateau is given.
courses.json
    the versions and the names of the cases.
"""

import argparse
import math
import pathlib
import warnings

import torch
from torch.optim import SGD, Adam, lr_scheduler as s
from torch.optim.swa_utils import SWALR

import common

STEPS, LR = 300, 0.05


def wave(step):
    return 1 + 0.5 * math.sin(step / 7)


CASES = {
    "LambdaLR": lambda o: s.LambdaLR(o, wave),
    "MultiplicativeLR": lambda o: s.MultiplicativeLR(o, lambda step: 1 - 0.01 * (step % 3)),
    "StepLR": lambda o: s.StepLR(o, 30, gamma=0.7),
    "MultiStepLR": lambda o: s.MultiStepLR(o, [200, 30, 80, 80], gamma=0.3),
    "MultiStepLR from 0": lambda o: s.MultiStepLR(o, [1, 2], gamma=0.5),
    "ConstantLR": lambda o: s.ConstantLR(o, factor=0.25, total_iters=40),
    "LinearLR": lambda o: s.LinearLR(o, start_factor=0.2, end_factor=0.9, total_iters=70),
    "ExponentialLR": lambda o: s.ExponentialLR(o, 0.97),
    "PolynomialLR": lambda o: s.PolynomialLR(o, total_iters=250, power=1.0),
    "PolynomialLR squared": lambda o: s.PolynomialLR(o, total_iters=120, power=2.0),
    "PolynomialLR root": lambda o: s.PolynomialLR(o, total_iters=400, power=0.5),
    "CosineAnnealingLR": lambda o: s.CosineAnnealingLR(o, 64, eta_min=0.002),
    "CosineAnnealingLR to 0": lambda o: s.CosineAnnealingLR(o, 400),
    "CosineAnnealingWarmRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 40, eta_min=0.001),
    "CosineAnnealingWarmRestarts doubled": lambda o: s.CosineAnnealingWarmRestarts(o, 17, T_mult=2),
    "CosineAnnealingWarmRestarts tripled": lambda o: s.CosineAnnealingWarmRestarts(o, 1, T_mult=3, eta_min=0.01),
    "OneCycleLR": lambda o: s.OneCycleLR(o, 0.2, total_steps=STEPS),
    "OneCycleLR linear": lambda o: s.OneCycleLR(o, 0.2, total_steps=301, anneal_strategy="linear", pct_start=0.17),
    "OneCycleLR three": lambda o: s.OneCycleLR(o, 0.2, total_steps=STEPS, three_phase=True, div_factor=10, final_div_factor=100),
    "OneCycleLR three linear": lambda o: s.OneCycleLR(o, 0.2, total_steps=STEPS, three_phase=True, pct_start=0.4, anneal_strategy="linear",
                                                      base_momentum=0.7, max_momentum=0.99),
    "CyclicLR": lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=20),
    "CyclicLR uneven": lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=10, step_size_down=37, base_momentum=0.6, max_momentum=0.95),
    "CyclicLR triangular2": lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=25, mode="triangular2"),
    "CyclicLR exp_range": lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=25, mode="exp_range", gamma=0.99),
    "CyclicLR scaled": lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=25, scale_fn=lambda c: 1 / (1 + c), scale_mode="cycle"),
    "SequentialLR": lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.95), s.CosineAnnealingLR(o, 100)], milestones=[20, 70]),
    "ChainedScheduler": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.99), s.StepLR(o, 50, 0.5)]),
    "warm-up, stable, decay": lambda o: s.SequentialLR(o, [s.LinearLR(o, 1 / 21, 1.0, 20), s.ConstantLR(o, 1.0, 1), s.LinearLR(o, 1.0, 0.1, 100)], milestones=[20, 150]),
    "SWALR": lambda o: SWALR(o, 0.01, anneal_epochs=50, anneal_strategy="cos"),
    "SWALR linear": lambda o: SWALR(o, 0.2, anneal_epochs=50, anneal_strategy="linear"),
}

PLATEAUS = {
    "ReduceLROnPlateau": dict(patience=5),
    "ReduceLROnPlateau max abs": dict(mode="max", threshold_mode="abs", threshold=0.05, factor=0.5, patience=3, cooldown=4, min_lr=0.001),
    "ReduceLROnPlateau max": dict(mode="max", factor=0.8, patience=2, threshold=0.01),
    "ReduceLROnPlateau abs": dict(threshold_mode="abs", threshold=0.02, factor=0.9, patience=1, cooldown=2, eps=1e-4),
    "ReduceLROnPlateau at once": dict(factor=0.6, patience=0, min_lr=1e-5),
}


def course(build):
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=LR, momentum=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = build(optimizer)
        rates, momenta = [], []
        for i in range(STEPS):
            rates.append(optimizer.param_groups[0]["lr"])
            momenta.append(optimizer.param_groups[0]["momentum"])
            optimizer.step()
            if i < STEPS - 1:
                scheduler.step()
    return torch.tensor(rates, dtype=torch.float64), torch.tensor(momenta, dtype=torch.float64)


def plateau(attrs, figures):
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    scheduler = s.ReduceLROnPlateau(optimizer, **attrs)
    rates = []
    for v in figures:
        scheduler.step(v)
        rates.append(optimizer.param_groups[0]["lr"])
    return torch.tensor(rates, dtype=torch.float64)


def groups():
    """Two groups of Adam: the one by a lambda, the other by another; parameters after each of 20 steps on given gradients."""
    g = torch.Generator().manual_seed(7)
    w, b = (torch.randn(n, generator=g, dtype=torch.float64) for n in (6, 3))
    grads = [torch.randn(20, n, generator=g, dtype=torch.float64) for n in (6, 3)]
    out = {"groups/init.w": w.clone(), "groups/init.b": b.clone(), "groups/gradient.w": grads[0], "groups/gradient.b": grads[1]}
    ps = [w.requires_grad_(), b.requires_grad_()]
    o = Adam([{"params": [ps[0]], "lr": 0.1}, {"params": [ps[1]], "lr": 0.02}], foreach=False)
    sched = s.LambdaLR(o, [wave, lambda step: 0.9 ** step])
    trace = [[], []]
    for i in range(20):
        for p, gs, t in zip(ps, grads, trace):
            p.grad = gs[i].clone()
        o.step()
        sched.step()
        for p, t in zip(ps, trace):
            t.append(p.detach().clone())
    out["groups/w"], out["groups/b"] = (torch.stack(t) for t in trace)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "optim/testdata")
    directory = parser.parse_args().dir
    tensors = groups()
    for name, build in CASES.items():
        rates, momenta = course(build)
        tensors[name] = rates
        if len(set(momenta.tolist())) > 1:
            tensors[name + "/momentum"] = momenta
    g = torch.Generator().manual_seed(3)
    figures = torch.exp(-torch.arange(STEPS, dtype=torch.float64) / 40) + 0.1 * torch.rand(STEPS, generator=g, dtype=torch.float64)
    tensors["plateau figures"] = figures
    for name, attrs in PLATEAUS.items():
        tensors[name] = plateau(attrs, figures.tolist())
    common.save_tensors(directory / "courses.safetensors", tensors)
    common.save_json(directory / "courses.json", {"versions": common.versions(), "lr": LR, "cases": list(CASES) + list(PLATEAUS)})
    print(f"{len(CASES) + len(PLATEAUS)} schedules")


if __name__ == "__main__":
    main()

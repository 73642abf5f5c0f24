"""100 steps of each optimizer of torch.optim with options, and of those that have only papers, on two problems.

    python rules_reference.py [--dir optim/testdata]

rules.safetensors, float64
    x [12,6], y [12,3], init.w [6,5], init.b [5], init.v [5,3]; the loss of "net" is the mean of
    (tanh(x·w + b)·v - y)², that of "squares" the mean of (x·w + b - x·w₀)² with w₀ = target [6,5].
    CASE/PROBLEM/w, b, v [3,...]: parameters after steps 1, 10 and 100; of LBFGS loss [3] too; of what averages, .average.
    EMA/, SWA/: the state of AveragedModel after 30 steps of SGD of a linear layer and a batch normalisation;
        update_bn.NAME: what update_bn makes of its statistics by rows 0 to 4, 5 and 6, 7 to 11 of x.
rules.json
    versions, and the cases: the optimizer, its arguments under PyTorch's names, and the steps to which LBFGS, whose every
    decision hangs on the last digits of the one before, carries a difference of 1e-10 without making it larger than 1e-6.

All is computed in float64. Lion, ScheduleFree, Muon with AdamW and Adam8bit are written out below after their papers;
Muon's products are in float64 too, where PyTorch's are in bfloat16.
"""

import argparse
import math
import pathlib

import numpy as np
import torch
from torch import optim

import common

STEPS, KEPT = 100, (1, 10, 100)


class Lion:
    """Chen et al., 2023, algorithm 2."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        self.params, self.lr, self.betas, self.decay, self.sign = params, lr, betas, weight_decay, -1 if maximize else 1
        self.m = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p, m in zip(self.params, self.m):
            g = self.sign * p.grad
            p.mul_(1 - self.lr * self.decay)
            p.sub_(self.lr * torch.sign(b1 * m + (1 - b1) * g))
            m.copy_(b2 * m + (1 - b2) * g)


class ScheduleFree:
    """AdamWScheduleFree of facebookresearch/schedule_free (Defazio et al., 2024), written out; the rate warms up by itself."""

    def __init__(self, params, lr=2.5e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, r=0.0, weight_lr_power=2.0, warmup=0):
        self.params, self.lr, self.betas, self.eps, self.decay, self.r, self.power, self.warmup = params, lr, betas, eps, weight_decay, r, weight_lr_power, warmup
        self.k, self.lr_max, self.sum = 0, 0.0, 0.0
        self.z, self.v = [p.detach().clone() for p in params], [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        lr = self.lr * ((self.k + 1) / (self.warmup + 1) if self.k < self.warmup else 1)
        self.k += 1
        self.lr_max = max(self.lr_max, lr)
        weight = self.k ** self.r * self.lr_max ** self.power
        self.sum += weight
        c = weight / self.sum
        for y, z, v in zip(self.params, self.z, self.v):
            v.mul_(b2).addcmul_(y.grad, y.grad, value=1 - b2)
            u = y.grad / ((v / (1 - b2 ** self.k)).sqrt() + self.eps) + self.decay * y
            y.lerp_(z, c)
            y.add_(u, alpha=lr * (b1 * (1 - c) - 1))
            z.sub_(u, alpha=lr)

    def average(self):
        return [y.detach() + (z - y.detach()) * (1 - 1 / self.betas[0]) for y, z in zip(self.params, self.z)]


class Muon:
    """torch.optim.Muon for matrices, without its rounding to bfloat16, and AdamW for the rest."""

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_steps=5, eps=1e-7, adjust="original", rest=None):
        self.matrices = [p for p in params if p.dim() == 2]
        others = [p for p in params if p.dim() != 2]
        self.rest = optim.AdamW(others, foreach=False, **rest) if others else None
        self.lr, self.decay, self.momentum, self.nesterov, self.ns_steps, self.eps, self.adjust = lr, weight_decay, momentum, nesterov, ns_steps, eps, adjust
        self.buf = [torch.zeros_like(p) for p in self.matrices]

    def orthogonal(self, g):
        x = g.T if g.size(0) > g.size(1) else g
        x = x / max(x.norm().item(), self.eps)
        for _ in range(self.ns_steps):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x.T if g.size(0) > g.size(1) else x

    @torch.no_grad()
    def step(self):
        if self.rest:
            self.rest.step()
        for p, buf in zip(self.matrices, self.buf):
            buf.lerp_(p.grad, 1 - self.momentum)
            u = self.orthogonal(p.grad.lerp(buf, self.momentum) if self.nesterov else buf)
            rows, columns = p.shape
            ratio = math.sqrt(max(1, rows / columns)) if self.adjust == "original" else 0.2 * math.sqrt(max(rows, columns))
            p.mul_(1 - self.lr * self.decay)
            p.sub_(u, alpha=self.lr * ratio)


def dynamic_map(signed):
    """The dynamic tree codes of Dettmers et al. (2022): 7 exponents of ten, linear fractions between."""
    data = []
    for i in range(7):
        n = 2 ** (i if signed else i + 1)
        edges = np.linspace(0.1, 1, n + 1)
        means = (edges[:-1] + edges[1:]) / 2
        data += list(10.0 ** (i - 6) * means)
        if signed:
            data += list(-(10.0 ** (i - 6)) * means)
    data += [0.0, 1.0]
    return np.sort(np.array(data))


class Adam8bit:
    """AdamW whose moments lie in dynamic 8-bit codes, a largest value for each block of 256."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.params, self.lr, self.betas, self.eps, self.decay, self.t = params, lr, betas, eps, weight_decay, 0
        self.maps = [dynamic_map(True), dynamic_map(False)]
        self.state = [[np.zeros(p.numel()), np.zeros(p.numel())] for p in params]

    def rounded(self, x, codes):
        out = np.empty_like(x)
        for lo in range(0, len(x), 256):
            part = x[lo:lo + 256]
            top = np.float64(np.float32(np.abs(part).max()))
            if top == 0:
                out[lo:lo + 256] = 0
                continue
            middles = (codes[:-1] + codes[1:]) / 2
            out[lo:lo + 256] = codes[np.searchsorted(middles, part / top, side="right")] * top
        return out

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, s in zip(self.params, self.state):
            g = p.grad.numpy().ravel()
            m, v = b1 * s[0] + (1 - b1) * g, b2 * s[1] + (1 - b2) * g * g
            p.mul_(1 - self.lr * self.decay)
            p.sub_(torch.from_numpy(self.lr / (1 - b1 ** self.t) * m / (np.sqrt(v / (1 - b2 ** self.t)) + self.eps)).reshape(p.shape))
            s[0], s[1] = self.rounded(m, self.maps[0]), self.rounded(v, self.maps[1])


CASES = {
    "SGD": [dict(lr=0.05), dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1), dict(lr=0.001, maximize=True, momentum=0.5)],
    "Adam": [dict(lr=0.01), dict(lr=0.01, amsgrad=True), dict(lr=0.01, amsgrad=True, weight_decay=0.1, betas=(0.5, 0.9), eps=1e-3), dict(lr=0.01, maximize=True)],
    "AdamW": [dict(lr=0.01), dict(lr=0.02, amsgrad=True, weight_decay=0.2), dict(lr=0.01, amsgrad=True, maximize=True)],
    "RMSprop": [dict(lr=0.01), dict(lr=0.001, momentum=0.9), dict(lr=0.01, centered=True), dict(lr=0.005, centered=True, momentum=0.8, weight_decay=0.1),
                dict(lr=0.003, alpha=0.9, eps=1e-3, weight_decay=0.05), dict(lr=0.01, maximize=True)],
    "Adagrad": [dict(lr=0.1), dict(lr=0.1, lr_decay=0.05), dict(lr=0.1, initial_accumulator_value=0.5, weight_decay=0.1), dict(lr=0.1, eps=1e-2), dict(lr=0.01, maximize=True)],
    "NAdam": [dict(lr=0.01), dict(lr=0.01, weight_decay=0.1), dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
              dict(lr=0.003, momentum_decay=0.1, betas=(0.8, 0.95), eps=1e-4), dict(lr=0.01, maximize=True)],
    "RAdam": [dict(lr=0.02), dict(lr=0.02, weight_decay=0.1), dict(lr=0.02, weight_decay=0.1, decoupled_weight_decay=True),
              dict(lr=0.005, betas=(0.8, 0.9), eps=1e-4), dict(lr=0.02, maximize=True)],
    "Adamax": [dict(lr=0.02), dict(lr=0.004, weight_decay=0.1, betas=(0.7, 0.9), eps=1e-3), dict(lr=0.02, maximize=True)],
    "Adadelta": [dict(), dict(lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.05), dict(maximize=True)],
    "Rprop": [dict(step_sizes=(1e-6, 0.02)), dict(lr=0.003, etas=(0.7, 1.05), step_sizes=(1e-3, 0.01)), dict(lr=0.002, step_sizes=(1e-4, 0.01), maximize=True)],
    "ASGD": [dict(), dict(lr=0.1, lambd=0.01, alpha=0.6, t0=20, weight_decay=0.05), dict(lr=0.05, lambd=0.1, t0=0), dict(lr=0.001, maximize=True)],
    "Adafactor": [dict(lr=0.003), dict(lr=0.0003, weight_decay=0.1, beta2_decay=-0.6, d=2.0), dict(lr=0.003, eps=(1e-8, 1e-2)), dict(lr=0.01, maximize=True)],
    "Lion": [dict(lr=0.003), dict(lr=0.003, weight_decay=0.3, betas=(0.8, 0.95)), dict(lr=0.003, maximize=True)],
    "ScheduleFree": [dict(lr=0.02), dict(lr=0.02, weight_decay=0.1, betas=(0.8, 0.99), eps=1e-4), dict(lr=0.02, warmup=20, r=0.5), dict(lr=0.02, weight_lr_power=1.0, warmup=5)],
    "Muon": [dict(lr=0.02, rest=dict(lr=0.01)), dict(lr=0.005, weight_decay=0.0, nesterov=False, momentum=0.8, rest=dict(lr=0.01, weight_decay=0.2, betas=(0.8, 0.95))),
             dict(lr=0.02, ns_steps=3, adjust="match_rms_adamw", rest=dict(lr=0.02))],
    "Adam8bit": [dict(lr=0.01), dict(lr=0.01, betas=(0.8, 0.95), weight_decay=0.2, eps=1e-4)],
    "LBFGS": [dict(lr=0.1, max_iter=1), dict(lr=1.0, max_iter=1, line_search_fn="strong_wolfe"), dict(lr=0.1, max_iter=4, history_size=3),
              dict(lr=1.0, max_iter=5, history_size=4, line_search_fn="strong_wolfe", tolerance_grad=1e-6)],
}
OWN = {"Lion": Lion, "ScheduleFree": ScheduleFree, "Muon": Muon, "Adam8bit": Adam8bit}


def train(kind, attrs, problem, data):
    names = ["w", "b", "v"] if problem == "net" else ["w", "b"]
    params = {n: data["init." + n].clone().requires_grad_() for n in names}
    attrs = dict(attrs)
    if kind in OWN:
        o = OWN[kind](list(params.values()), **attrs)
    elif kind == "LBFGS":
        o = optim.LBFGS(params.values(), **attrs)
    else:
        if kind == "Adafactor" and "eps" not in attrs:
            attrs["eps"] = (2.0 ** -23, 1e-3)  # of float32: torch.optim takes the dtype's
        o = getattr(optim, kind)(params.values(), foreach=False, **attrs)

    def loss():
        h = data["x"] @ params["w"] + params["b"]
        return ((torch.tanh(h) @ params["v"] - data["y"]) ** 2).mean() if problem == "net" else ((h - data["x"] @ data["target"]) ** 2).mean()

    def closure():
        for p in params.values():
            p.grad = None
        value = loss()
        value.backward()
        return value

    torch.set_default_dtype(torch.float64)  # of ASGD's rate, which it rounds to the default
    kept, losses = {n: [] for n in names}, []
    for s in range(1, STEPS + 1):
        if kind == "LBFGS":
            o.step(closure)
        else:
            closure()
            o.step()
        if s in KEPT:
            for n in names:
                kept[n].append(params[n].detach().clone())
            losses.append(loss().detach())
    torch.set_default_dtype(torch.float32)
    out = {n: torch.stack(rows) for n, rows in kept.items()}
    if kind == "LBFGS":
        out["loss"] = torch.stack(losses)
    if kind == "ScheduleFree":
        out.update({n + ".average": t for n, t in zip(names, o.average())})
    if kind == "ASGD":
        out.update({n + ".average": o.state[params[n]]["ax"] for n in names})
    return out


def carried(kind, attrs, problem, data, out):
    """The steps to which weights can be compared: those where data that differ by 1e-10 leave them within 1e-6."""
    if kind != "LBFGS":
        return KEPT
    g = torch.Generator().manual_seed(12)
    other = train(kind, attrs, problem, {n: t + 1e-10 * torch.randn(t.shape, generator=g, dtype=t.dtype) for n, t in data.items()})
    names = [n for n in out if n != "loss"]
    apart = [max(((out[n][i] - other[n][i]).abs().max() / max(out[m][i].abs().max() for m in names)).item() for n in names) for i in range(len(KEPT))]
    return [s for i, s in enumerate(KEPT) if max(apart[:i + 1]) < 1e-6]


AVERAGES = {"EMA": optim.swa_utils.get_ema_avg_fn(0.9), "SWA": None}


def averaged(data, fn):
    """30 steps of SGD on a layer with batch normalisation, and a mean of its weights from the 4th step on."""
    torch.manual_seed(5)
    layer = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5)).double()
    with torch.no_grad():
        layer[0].weight.copy_(data["init.w"].T)
        layer[0].bias.copy_(data["init.b"])
    mean, o = optim.swa_utils.AveragedModel(layer, avg_fn=fn), optim.SGD(layer.parameters(), lr=0.1)
    for s in range(30):
        o.zero_grad()
        ((layer(data["x"]) - data["x"] @ data["target"]) ** 2).mean().backward()
        o.step()
        if s >= 3:
            mean.update_parameters(layer)
    kept = {n: t.clone() for n, t in mean.state_dict().items()}
    optim.swa_utils.update_bn([data["x"][:5], data["x"][5:7], data["x"][7:]], mean)
    kept.update({"update_bn." + n: t.clone() for n, t in mean.state_dict().items() if "running" in n or "tracked" in n})
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "optim/testdata")
    directory = parser.parse_args().dir
    common.deterministic(11)
    g = torch.Generator().manual_seed(11)
    data = {n: torch.randn(shape, generator=g).double() for n, shape in
            dict([("x", (12, 6)), ("y", (12, 3)), ("target", (6, 5)), ("init.w", (6, 5)), ("init.b", (5,)), ("init.v", (5, 3))]).items()}
    tensors, cases = dict(data), []
    for kind, rows in CASES.items():
        for i, attrs in enumerate(rows):
            name = f"{kind}{i}"
            kept = {}
            for problem in ("squares", "net"):
                out = train(kind, attrs, problem, data)
                kept[problem] = carried(kind, attrs, problem, data, out)
                tensors.update({f"{name}/{problem}/{n}": t for n, t in out.items()})
            cases.append({"name": name, "optimizer": kind, "attrs": attrs, "kept": kept})
    for name, fn in AVERAGES.items():
        tensors.update({f"{name}/{n}": t for n, t in averaged(data, fn).items()})
    common.save_tensors(directory / "rules.safetensors", {n: t.contiguous() for n, t in tensors.items()})
    common.save_json(directory / "rules.json", {"versions": common.versions(), "kept": KEPT, "cases": cases})
    print(len(cases), "cases")


if __name__ == "__main__":
    main()

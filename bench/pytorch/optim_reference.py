"""Ten steps of each optimizer on given gradients, learning rate schedules, clipping, and loss scaling.

    python optim_reference.py [--dir optim/testdata]

optimizers.json + optimizers.safetensors
    init.w [7,5], init.b [5]; gradient.w [10,7,5], gradient.b [10,5]; row s of the
    gradients is given to step s, whatever the parameters are by then;
    CASE/w [10,7,5], CASE/b [10,5]: parameters after each step;
    CASE/state.w.exp_avg …: optimizer state after the last step, under PyTorch's names.
    Gradients of w[0] are 0 in every step, so decay and momentum are seen alone.
schedules.json
    rates[s] is the learning rate that step s, counted from 0, takes.
clip.json + clip.safetensors
    CASE/in.a …: gradients; CASE/out.a …: after clip_grad_norm_; JSON: max_norm, norm.
    PyTorch scales by min(1, max_norm / (norm + 1e-6)).
scaler.json + scaler.safetensors
    Steps with torch.amp.GradScaler, computed in float32. init.w [3,4], init.b [4];
    gradient.w [16,3,4], gradient.b [16,4]: the loss of step s is the sum of the
    products of parameters and row s. Some gradients are inf or NaN, some overflow
    when they are scaled. CASE/w [16,3,4], CASE/b [16,4]: parameters after each step.
    JSON: scale and growth tracker after each step; updates[i]: those that optimizer i made;
    max_norm: gradients are clipped after unscale_, if it is not 0. In "two" w and b
    have an optimizer each, and share the scaler.

Optimizers and clipping are computed in float64 and stored in float32; the rates
in JSON are float64.
"""

import argparse
import math
import pathlib
import warnings

import torch
from torch.optim import SGD, Adam, AdamW, lr_scheduler

import common
import golden

SEED = 5
STEPS = 10

OPTIMIZERS = {
    "sgd": (SGD, dict(lr=0.1)),
    "sgd_decay": (SGD, dict(lr=0.1, weight_decay=0.05)),
    "sgd_momentum": (SGD, dict(lr=0.05, momentum=0.9)),
    "sgd_momentum_decay": (SGD, dict(lr=0.05, momentum=0.9, weight_decay=0.05)),
    "sgd_nesterov": (SGD, dict(lr=0.05, momentum=0.9, nesterov=True)),
    "sgd_nesterov_decay": (SGD, dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.05)),
    "adam": (Adam, dict(lr=0.01)),
    "adam_betas_eps": (Adam, dict(lr=0.02, betas=(0.7, 0.95), eps=1e-2)),
    "adam_decay": (Adam, dict(lr=0.01, weight_decay=0.1)),
    "adamw": (AdamW, dict(lr=0.01, weight_decay=0.01)),
    "adamw_betas_eps": (AdamW, dict(lr=0.02, betas=(0.7, 0.95), eps=1e-2, weight_decay=0.1)),
    "adamw_no_decay": (AdamW, dict(lr=0.01, weight_decay=0.0)),
    "adamw_matrices_only": (AdamW, dict(lr=0.01, weight_decay=0.1)),
}


def optimizers(directory):
    g = torch.Generator().manual_seed(SEED)
    init = {"w": golden.exact(torch.randn(7, 5, generator=g)), "b": golden.exact(torch.randn(5, generator=g))}
    # Sizes over four decades: eps matters to the small ones.
    scale = {"w": torch.logspace(-3, 1, 5), "b": torch.logspace(-3, 1, 5)}
    gradient = {n: golden.exact(scale[n] * torch.randn(STEPS, *p.shape, generator=g)) for n, p in init.items()}
    gradient["w"][:, 0] = 0
    tensors = {**{f"init.{n}": p for n, p in init.items()}, **{f"gradient.{n}": t for n, t in gradient.items()}}
    cases = []
    for name, (kind, attrs) in OPTIMIZERS.items():
        params = {n: p.clone().requires_grad_() for n, p in init.items()}
        groups = [{"params": [params["w"]]}, {"params": [params["b"]]}]
        if name == "adamw_matrices_only":
            groups[1]["weight_decay"] = 0.0
        optimizer = kind(groups, **attrs, foreach=False)
        trace = {n: [] for n in params}
        for s in range(STEPS):
            for n, p in params.items():
                p.grad = gradient[n][s].clone()
            optimizer.step()
            for n, p in params.items():
                trace[n].append(p.detach().clone())
        tensors.update({f"{name}/{n}": torch.stack(rows) for n, rows in trace.items()})
        for n, p in params.items():
            tensors.update({f"{name}/state.{n}.{k}": v for k, v in optimizer.state[p].items()
                            if isinstance(v, torch.Tensor) and v.dim()})
        decays = "w" if name == "adamw_matrices_only" else "w, b"
        cases.append({"name": name, "optimizer": kind.__name__, "attrs": attrs, "decays": decays})
    common.save_tensors(directory / "optimizers.safetensors", golden.narrow(tensors))
    common.save_json(directory / "optimizers.json", {"versions": common.versions(), "steps": STEPS, "cases": cases})
    return len(cases)


def rates(build, lr, steps):
    """The rates that a PyTorch scheduler, stepped after every optimizer step, gives."""
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SequentialLR steps its parts before the optimizer
        scheduler = build(optimizer)
        out = []
        for _ in range(steps):
            out.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    return out


def nanogpt(lr, min_lr, warmup, horizon, steps):
    """get_lr of nanoGPT's train.py: warm-up (s+1)/(warmup+1), cosine to min_lr at horizon, then min_lr."""
    def at(s):
        if s < warmup:
            return lr * (s + 1) / (warmup + 1)
        if s > horizon:
            return min_lr
        return min_lr + 0.5 * (1 + math.cos(math.pi * (s - warmup) / (horizon - warmup))) * (lr - min_lr)
    return [at(s) for s in range(steps)]


def cosine(lr, eta_min, horizon, steps):
    """The closed form that CosineAnnealingLR documents, held at eta_min after the horizon."""
    return [eta_min + 0.5 * (lr - eta_min) * (1 + math.cos(math.pi * min(s, horizon) / horizon)) for s in range(steps)]


def schedules(directory):
    lr, n = 0.01, 30
    warm = lambda o: lr_scheduler.LinearLR(o, start_factor=0.1, end_factor=1.0, total_iters=5)
    cases = []

    def case(name, attrs, values):
        cases.append({"name": name, "lr": lr, "attrs": attrs, "rates": values})

    case("constant", {}, [lr] * n)
    case("LinearLR", dict(start_factor=0.1, end_factor=1.0, total_iters=5), rates(warm, lr, n))
    case("CosineAnnealingLR", dict(T_max=20, eta_min=0.001),
         # After T_max PyTorch climbs again; a schedule that stops there is compared on the first 21.
         rates(lambda o: lr_scheduler.CosineAnnealingLR(o, 20, eta_min=0.001), lr, 21))
    case("cosine closed form", dict(horizon=20, eta_min=0.001), cosine(lr, 0.001, 20, n))
    case("SequentialLR(LinearLR, CosineAnnealingLR)",
         dict(start_factor=0.1, warmup=5, T_max=15, eta_min=0.0),
         rates(lambda o: lr_scheduler.SequentialLR(
             o, [warm(o), lr_scheduler.CosineAnnealingLR(o, 15)], milestones=[5]), lr, 21))
    case("nanoGPT", dict(warmup=5, horizon=20, min_lr=0.001), nanogpt(lr, 0.001, 5, 20, n))
    case("nanoGPT without warm-up", dict(warmup=0, horizon=20, min_lr=0.0), nanogpt(lr, 0.0, 0, 20, n))
    case("StepLR", dict(step_size=7, gamma=0.5), rates(lambda o: lr_scheduler.StepLR(o, 7, gamma=0.5), lr, n))
    case("ExponentialLR", dict(gamma=0.9), rates(lambda o: lr_scheduler.ExponentialLR(o, 0.9), lr, n))
    common.save_json(directory / "schedules.json", {"versions": common.versions(), "cases": cases})
    return len(cases)


def clip(directory):
    g = torch.Generator().manual_seed(SEED)
    shapes = {"a": (3, 4), "b": (5,), "c": ()}
    base = {n: golden.exact(torch.randn(s, generator=g)) for n, s in shapes.items()}
    tensors, cases = {}, []
    for name, scale, max_norm, norm_type in (
        ("above", 3.0, 1.0, 2.0), ("below", 0.01, 1.0, 2.0), ("tiny", 1e-8, 1e-9, 2.0),
        ("zero", 0.0, 1.0, 2.0), ("largest", 3.0, 0.5, math.inf),
    ):
        params = {n: torch.zeros(s, dtype=torch.float64, requires_grad=True) for n, s in shapes.items()}
        for n, p in params.items():
            p.grad = golden.exact(scale * base[n])
            tensors[f"{name}/in.{n}"] = p.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(params.values(), max_norm, norm_type, foreach=False).item()
        tensors.update({f"{name}/out.{n}": p.grad for n, p in params.items()})
        cases.append({"name": name, "max_norm": max_norm, "norm_type": "inf" if math.isinf(norm_type) else norm_type,
                      "norm": norm})
    common.save_tensors(directory / "clip.safetensors", golden.narrow(tensors))
    common.save_json(directory / "clip.json", {"versions": common.versions(), "cases": cases})
    return len(cases)


SCALER_STEPS = 16
SCALERS = {  # optimizers of all parameters, or of w and of b; GradScaler; max_norm
    "sgd": ([(SGD, dict(lr=0.05, momentum=0.9))], dict(init_scale=1024.0, growth_interval=3), 0.0),
    "adamw_clipped": ([(AdamW, dict(lr=0.01, weight_decay=0.1))], dict(init_scale=65536.0, growth_interval=2), 0.5),
    "factors": ([(SGD, dict(lr=0.05))], dict(init_scale=1000.0, growth_factor=1.7, backoff_factor=0.3, growth_interval=2), 0.0),
    "two": ([(Adam, dict(lr=0.01)), (SGD, dict(lr=0.1))], dict(init_scale=256.0, growth_interval=4), 0.0),
}


def scaler(directory):
    g = torch.Generator().manual_seed(SEED)
    init = {"w": torch.randn(3, 4, generator=g), "b": torch.randn(4, generator=g)}
    gradient = {n: torch.randn(SCALER_STEPS, *p.shape, generator=g) for n, p in init.items()}
    gradient["w"][1, 2, 3] = math.inf
    gradient["b"][6, 0] = math.nan
    gradient["w"][7, 0, 0] = 1e37  # finite until it is scaled
    gradient["b"][11, 3] = -math.inf
    tensors = {**{f"init.{n}": p for n, p in init.items()}, **{f"gradient.{n}": t for n, t in gradient.items()}}
    cases = []
    for name, (kinds, attrs, max_norm) in SCALERS.items():
        params = {n: p.clone().requires_grad_() for n, p in init.items()}
        of = [[params["w"]], [params["b"]]] if len(kinds) > 1 else [list(params.values())]
        optimizers = [kind(ps, **a, foreach=False) for (kind, a), ps in zip(kinds, of)]
        scale = torch.amp.GradScaler("cpu", **attrs)
        trace, scales, trackers, updates = {n: [] for n in params}, [], [], [0] * len(kinds)
        for s in range(SCALER_STEPS):
            scale.scale(sum((p * gradient[n][s]).sum() for n, p in params.items())).backward()
            for i, (o, ps) in enumerate(zip(optimizers, of)):
                if max_norm:
                    scale.unscale_(o)
                    torch.nn.utils.clip_grad_norm_(ps, max_norm, foreach=False)
                before = [p.detach().clone() for p in ps]
                scale.step(o)
                updates[i] += any(not torch.equal(a, p) for a, p in zip(before, ps))
                o.zero_grad()
            scale.update()
            state = scale.state_dict()
            scales.append(state["scale"])
            trackers.append(state["_growth_tracker"])
            for n, p in params.items():
                trace[n].append(p.detach().clone())
        tensors.update({f"{name}/{n}": torch.stack(rows) for n, rows in trace.items()})
        cases.append({"name": name, "optimizers": [{"optimizer": kind.__name__, "attrs": a} for kind, a in kinds], "scaler": attrs,
                      "max_norm": max_norm, "scales": scales, "trackers": trackers, "updates": updates})
    common.save_tensors(directory / "scaler.safetensors", tensors)
    common.save_json(directory / "scaler.json", {"versions": common.versions(), "steps": SCALER_STEPS, "cases": cases})
    return len(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "optim/testdata")
    directory = parser.parse_args().dir
    common.deterministic(SEED)
    print(f"{optimizers(directory)} optimizers, {schedules(directory)} schedules, {clip(directory)} clippings, "
          f"{scaler(directory)} loss scalings in {directory}")


if __name__ == "__main__":
    main()

"""The cases of activations and of norms by channel, for layers_reference.py."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import golden
from layers_losses import Maker

SHAPES = ((7,), (3, 5), (2, 3, 4), (1, 2, 3, 2), (15,))


def module(m, make, inputs, name="", **attrs):
    """A case of a module with parameters drawn here, in training."""
    make.double()
    params = {n: golden.exact(1.0 * (n == "weight") + 0.3 * torch.randn(p.shape, generator=m.g)) for n, p in make.named_parameters()}

    def run(**t):
        return torch.func.functional_call(make, {n: t[n] for n in params}, tuple(t[n] for n in inputs))

    kind = name or type(make).__name__
    tensors = golden.record(run, inputs, params, [*[n for n, t in inputs.items() if t.is_floating_point()], *params], m.g, second=True)
    return f"{kind}_{next(m.count)}", kind, attrs, tensors


def activations(g):
    """Yields (name, layer, attrs, tensors). Values include the kinks."""
    m = Maker(g)

    def draw(shape, kind=""):
        x = m.randn(*shape, scale=3)
        flat = x.view(-1)
        bent = 1e-3 if kind in ("elu", "celu", "selu", "PReLU") else 0.0  # whose second derivatives at 0 are a convention
        kinks = torch.tensor([bent, -3.0, 3.0, 6.0, -0.5, 0.5, 1.0, -1.0, -30.0, 30.0], dtype=torch.double)
        n = min(len(kinks), len(flat) // 2)
        flat[:n] = kinks[torch.randperm(len(kinks), generator=g)[:n]]
        return x

    table = (
        ("leaky_relu", F.leaky_relu, dict(negative_slope=(0.01, 0.3, -0.5))),
        ("elu", F.elu, dict(alpha=(1.0, 0.4, 2.0))),
        ("celu", F.celu, dict(alpha=(1.0, 0.4, 2.0))),
        ("selu", F.selu, {}),
        ("softplus", F.softplus, dict(beta=(1.0, 0.5, 3.0), threshold=(20.0, 2.0))),
        ("logsigmoid", F.logsigmoid, {}),
        ("mish", F.mish, {}),
        ("softsign", F.softsign, {}),
        ("tanhshrink", F.tanhshrink, {}),
        ("relu6", F.relu6, {}),
        ("hardsigmoid", F.hardsigmoid, {}),
        ("hardswish", F.hardswish, {}),
        ("hardshrink", F.hardshrink, dict(lambd=(0.5, 1.0, 3.0))),
        ("softshrink", F.softshrink, dict(lambd=(0.5, 1.0, 3.0))),
        ("hardtanh", F.hardtanh, dict(min_val=(-1.0, -3.0), max_val=(1.0, 0.5))),
        ("threshold", F.threshold, dict(threshold=(0.5, -1.0), value=(0.0, 20.0))),
        ("log_softmax_last", lambda x: F.log_softmax(x, -1), {}),
        ("softmin", lambda x: F.softmin(x, -1), {}),
    )
    for kind, f, choices in table:
        first = {k: v[0] for k, v in choices.items()}
        runs = [first] * 4 + [{**first, k: v} for k, values in choices.items() for v in values[1:]] or [first]
        for i, attrs in enumerate(runs + [runs[-1]]):
            yield m.case(kind, lambda t, **a: f(t["x"], **a), ("x",), {"x": draw(SHAPES[i % len(SHAPES)], kind)},
                         kind != "hardsigmoid", **attrs)  # which PyTorch derives once
    gates = {"": torch.sigmoid, "silu": F.silu, "gelu": F.gelu, "relu": F.relu, "identity": lambda b: b}
    for gate, f in gates.items():
        for shape, dim in (((4,), -1), ((3, 6), 1), ((2, 4, 5), 1), ((2, 3, 8), -1), ((1, 2, 4, 3), -2)):
            def run(t, dim, gate):
                a, b = t["x"].chunk(2, dim)
                return F.glu(t["x"], dim) if gate == "" else a * f(b)
            yield m.case("glu", run, ("x",), {"x": m.randn(*shape)}, dim=dim, gate=gate)
    for n, shape in ((1, (7,)), (1, (3, 5)), (3, (2, 3)), (2, (4, 2, 5)), (3, (1, 3, 2, 2)), (1, (2, 2, 3))):
        yield module(m, nn.PReLU(n), {"x": draw(shape, "PReLU")})


def norms(g):
    """Group and instance norms, with and without weights; instance norms that track statistics train once, then evaluate."""
    m = Maker(g)
    for groups, shape in ((1, (2, 4, 5)), (2, (3, 4, 3, 2)), (4, (1, 4, 6)), (3, (2, 6, 1, 3)), (2, (4, 6)), (2, (1, 4, 2, 2, 3))):
        for eps in (1e-5, 0.3):
            for affine in (True, False):
                yield module(m, nn.GroupNorm(groups, shape[1], eps, affine), {"x": 2 + m.randn(*shape)}, groups=groups, eps=eps)
    for kind, shape in ((nn.InstanceNorm1d, (2, 3, 5)), (nn.InstanceNorm1d, (1, 2, 7)), (nn.InstanceNorm2d, (3, 2, 4, 3)),
                        (nn.InstanceNorm2d, (2, 4, 1, 3)), (nn.InstanceNorm3d, (2, 2, 2, 3, 2))):
        for eps, affine in ((1e-5, True), (0.2, False)):
            yield module(m, kind(shape[1], eps, affine=affine), {"x": 1 + m.randn(*shape)}, "InstanceNorm", eps=eps)
        tracking = kind(shape[1], momentum=0.3, affine=True, track_running_stats=True).double()
        params = {n: golden.exact(1.0 * (n == "weight") + 0.3 * torch.randn(p.shape, generator=g)) for n, p in tracking.named_parameters()}

        def run(x1, x2, weight, bias):
            tracking.reset_running_stats()
            outs = []
            for train, x in ((True, x1), (False, x2)):
                tracking.train(train)
                outs.append(torch.func.functional_call(tracking, {"weight": weight, "bias": bias}, x))
            return tuple(outs)

        inputs = {"x1": 1 + 2 * m.randn(*shape), "x2": m.randn(*shape)}
        inputs = {n: golden.exact(x) for n, x in inputs.items()}
        case = golden.record(run, inputs, params, ["x1", "x2", "weight", "bias"], g, outputs=("y1", "y2"), second=True)
        case.update({"out.running_mean": tracking.running_mean, "out.running_var": tracking.running_var})
        yield f"InstanceNormTracked_{next(m.count)}", "InstanceNormTracked", dict(momentum=0.3), case

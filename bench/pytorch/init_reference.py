"""PyTorch's default initialisations as bounds and moments, and torch.nn.init as what it asks the generator for.

    python init_reference.py [--file nn/testdata/init.json] [--initialisers nn/testdata/initialisers.json]

Each row: a layer with its sizes, a parameter's name and shape, its distribution
(uniform(−bound, bound), normal(mean, std) or constant(value)) with the mean and
standard deviation that follow, and what a large sample drawn by PyTorch showed
(samples, mean, std, min, max): the script refuses to write a row that the sample
contradicts. Of initialisers a row has the shape, the arguments, and the bounds or
the moments with which the tensor is filled, or the values themselves.
"""

import argparse
import contextlib
import math
import pathlib

import torch
import torch.nn as nn

import common

SEED = 11
DRAWS = 50


def uniform(fan_in):
    """kaiming_uniform(a=√5): gain √(2/(1+5)), so the bound is √3·gain/√fan_in = 1/√fan_in; biases have the same."""
    bound = 1 / math.sqrt(fan_in)
    return {"distribution": "uniform", "bound": bound, "fan_in": fan_in, "mean": 0.0, "std": bound / math.sqrt(3)}


def normal(std=1.0):
    return {"distribution": "normal", "mean": 0.0, "std": std}


def constant(value):
    return {"distribution": "constant", "value": value, "mean": value, "std": 0.0}


def xavier(fan_in, fan_out):
    bound = math.sqrt(6 / (fan_in + fan_out))
    return {"distribution": "uniform", "bound": bound, "mean": 0.0, "std": bound / math.sqrt(3)}


def table():
    """Yields (layer, attrs, constructor, parameter → distribution)."""
    for n, m in ((784, 128), (30, 7), (5, 3)):
        yield "Linear", dict(in_features=n, out_features=m), lambda n=n, m=m: nn.Linear(n, m), {
            "weight": uniform(n), "bias": uniform(n)}
    for c, o, k, g in ((3, 8, 3, 1), (8, 12, (3, 5), 4), (6, 6, 3, 6), (16, 4, 1, 1)):
        area = k * k if isinstance(k, int) else k[0] * k[1]
        fan_in = c // g * area
        yield "Conv2d", dict(in_channels=c, out_channels=o, kernel=k, groups=g), (
            lambda c=c, o=o, k=k, g=g: nn.Conv2d(c, o, k, groups=g)), {"weight": uniform(fan_in), "bias": uniform(fan_in)}
    yield "Embedding", dict(num_embeddings=50, dim=16), lambda: nn.Embedding(50, 16), {"weight": normal()}
    ones = {"weight": constant(1.0), "bias": constant(0.0)}
    yield "LayerNorm", dict(shape=[6]), lambda: nn.LayerNorm(6), ones
    yield "RMSNorm", dict(shape=[6]), lambda: nn.RMSNorm(6), {"weight": constant(1.0)}
    yield "BatchNorm1d", dict(features=6), lambda: nn.BatchNorm1d(6), {
        **ones, "running_mean": constant(0.0), "running_var": constant(1.0)}
    yield "BatchNorm2d", dict(features=6), lambda: nn.BatchNorm2d(6), {
        **ones, "running_mean": constant(0.0), "running_var": constant(1.0)}
    # in_proj_weight is one [3E, E] matrix for xavier_uniform, not three [E, E].
    yield "MultiheadAttention", dict(embed=12, heads=3), lambda: nn.MultiheadAttention(12, 3), {
        "in_proj_weight": xavier(12, 36), "in_proj_bias": constant(0.0),
        "out_proj.weight": uniform(12), "out_proj.bias": constant(0.0)}


def check(name, rule, sample):
    """Raises if a sample of PyTorch's contradicts the rule."""
    mean, std, n = sample.mean().item(), sample.std(unbiased=False).item(), sample.numel()
    # Six standard errors of the mean; the spread of a spread is below the spread's own.
    slack = 6 * rule["std"] / math.sqrt(n) + 1e-9
    if abs(mean - rule["mean"]) > slack or abs(std - rule["std"]) > slack:
        raise SystemExit(f"{name}: mean {mean}, std {std} contradict {rule}")
    if "bound" in rule and not 0.9 * rule["bound"] < sample.abs().max().item() <= rule["bound"] * (1 + 1e-6):
        raise SystemExit(f"{name}: largest {sample.abs().max().item()} contradicts {rule}")
    return {"samples": n, "mean": mean, "std": std, "min": sample.min().item(), "max": sample.max().item()}


@contextlib.contextmanager
def asked():
    """What tensors are asked to be filled with."""
    calls = []
    kept = torch.Tensor.uniform_, torch.Tensor.normal_

    def note(kind, f):
        def run(self, a, b, **kw):
            calls.append({"distribution": kind, "a": float(a), "b": float(b)})
            return f(self, a, b, **kw)
        return run

    torch.Tensor.uniform_, torch.Tensor.normal_ = note("uniform", kept[0]), note("normal", kept[1])
    try:
        yield calls
    finally:
        torch.Tensor.uniform_, torch.Tensor.normal_ = kept


SHAPES = ((7, 3), (1, 5), (5, 1), (4, 6, 3), (2, 3, 5, 4), (6, 2, 1, 3, 2))
FLAT = ((13,), (), *SHAPES)


def initialisers():
    """Yields (name, shape, arguments) of the functions of torch.nn.init that end in an underscore."""
    for shape in FLAT:
        yield "uniform", shape, dict(a=-1.0, b=3.0)
        yield "normal", shape, dict(mean=-2.0, std=0.5)
        yield "constant", shape, dict(val=2.5)
        for a, b in ((-2.0, 2.0), (0.5, 4.0), (-1.0, -0.25)):
            yield "trunc_normal", shape, dict(mean=0.25, std=0.75, a=a, b=b)
    for shape in SHAPES:
        for gain in (1.0, 5 / 3):
            yield "xavier_uniform", shape, dict(gain=gain)
            yield "xavier_normal", shape, dict(gain=gain)
            yield "orthogonal", shape, dict(gain=gain)
        for slope, mode, after in ((0, "fan_in", "leaky_relu"), (5**0.5, "fan_out", "leaky_relu"), (0, "fan_out", "relu"), (0, "fan_in", "tanh"), (0, "fan_in", "selu"),
                                   (0, "fan_out", "sigmoid"), (0, "fan_in", "linear"), (0, "fan_in", "conv_transpose2d")):
            yield "kaiming_uniform", shape, dict(a=slope, mode=mode, nonlinearity=after)
            yield "kaiming_normal", shape, dict(a=slope, mode=mode, nonlinearity=after)
    for shape in ((7, 3), (1, 5), (5, 1), (4, 4), (2, 11), (3, 0)):
        yield "eye", shape, {}
    for shape in ((7, 3), (1, 5), (11, 1), (4, 4), (2, 13)):
        for sparsity in (0.0, 0.25, 0.9):
            yield "sparse", shape, dict(sparsity=sparsity, std=0.5)
    for shape, groups in (((4, 6, 3), 1), ((4, 2, 2), 2), ((6, 3, 5, 4), 3), ((5, 7, 1, 2), 1), ((4, 2, 3, 1, 2), 4), ((1, 1, 1), 1)):
        yield "dirac", shape, dict(groups=groups)


def initialised(name, shape, attrs):
    """A row of an initialiser."""
    init, p = getattr(nn.init, name + "_"), torch.empty(shape)
    row = {"init": name, "shape": list(shape), "attrs": attrs}
    if name in ("eye", "dirac", "constant"):
        return {**row, "distribution": "values", "values": init(p, **attrs).flatten().tolist()}
    if name == "orthogonal":
        rows = init(p.double(), **attrs).flatten(1)
        gram = rows @ rows.T if len(rows) <= rows.shape[1] else rows.T @ rows
        torch.testing.assert_close(gram, gram[0, 0] * torch.eye(len(gram), dtype=torch.double))
        return {**row, "distribution": "orthogonal", "a": gram[0, 0].item()}
    if name == "trunc_normal":  # the moments that a large sample shows
        sample = init(torch.empty(2_000_000, dtype=torch.double), **attrs)
        return {**row, "distribution": "truncated", "a": sample.mean().item(), "b": sample.std().item()}
    with asked() as calls:
        init(p, **attrs)
    row.update(calls[0])
    if name == "sparse":
        zeros = (p == 0).sum(0)
        assert (zeros == zeros[0]).all()
        row.update(distribution="sparse", zeros=zeros[0].item())
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=pathlib.Path, default=common.ROOT / "nn/testdata/init.json")
    parser.add_argument("--initialisers", type=pathlib.Path, default=common.ROOT / "nn/testdata/initialisers.json")
    args = parser.parse_args()
    common.deterministic(SEED)
    rows = []
    for layer, attrs, construct, rules in table():
        draws = [construct().state_dict() for _ in range(DRAWS)]
        for parameter, rule in rules.items():
            sample = torch.stack([d[parameter] for d in draws]).double()
            seen = check(f"{layer} {attrs} {parameter}", rule, sample)
            rows.append({"layer": layer, "attrs": attrs, "parameter": parameter,
                         "shape": list(draws[0][parameter].shape), **rule, "seen": seen})
    common.save_json(args.file, {"versions": common.versions(), "rows": rows})
    print(f"{len(rows)} rows in {args.file}")
    rows = [initialised(*row) for row in initialisers()]
    common.save_json(args.initialisers, {"versions": common.versions(), "rows": rows})
    print(f"{len(rows)} rows in {args.initialisers}")


if __name__ == "__main__":
    main()

"""PyTorch's default initialisations as bounds and moments.

    python init_reference.py [--file nn/testdata/init.json]

Each row: a layer with its sizes, a parameter's name and shape, its distribution
(uniform(−bound, bound), normal(mean, std) or constant(value)) with the mean and
standard deviation that follow, and what a large sample drawn by PyTorch showed
(samples, mean, std, min, max): the script refuses to write a row that the sample
contradicts.
"""

import argparse
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=pathlib.Path, default=common.ROOT / "nn/testdata/init.json")
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


if __name__ == "__main__":
    main()

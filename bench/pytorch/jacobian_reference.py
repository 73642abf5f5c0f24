"""Golden products with derivatives, Jacobians and Hessians, of torch.autograd.functional and torch.func.

    python jacobian_reference.py [--dir tensor/testdata]

Writes jacobian.safetensors and jacobian.json, a list of names. In a case: x.0, x.1, …
operands, v.0, v.1, … directions of their shapes, u one of the result's, y the result,
jvp, vjp.0, vjp.1, …, jacobian.0, jacobian.1, …; of functions with one number hvp.0, …
and hessian.0.0, …. tensor/jacobian_test.go has the same functions. Computed in float64,
stored in float64.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F
from torch.autograd import functional

import common

FUNCTIONS = {
    "products": (lambda a, b: (a @ b).tanh(), (2, 3), (3, 4)),
    "softmax": (lambda a: a.softmax(-1) * a.exp(), (3, 2)),
    "broadcast": (lambda a, b: a.sin() * b + b ** 3, (2, 1, 3), (2, 1)),
    "first only": (lambda a, b: a.sigmoid(), (4,), (2, 2)),
    "norm": (lambda a, w: F.layer_norm(a, (5,), w), (2, 5), (5,)),
    "straight": (lambda a, b: 3 * a + b, (2, 2), (2, 2)),
    "one number": (lambda a, b: ((a * b).exp().sum() * a.sum()), (3,), (2, 3)),
    "loss": (lambda w, x: F.softplus(x @ w).log().mean(), (3, 1), (5, 3)),
    "cubes": (lambda a: (a ** 3).sum(), (2, 1, 2)),
    "straight number": (lambda a, b: (a * 2).sum() + b.sum(), (2,), (1,)),
    "scalar": (lambda a: a.exp() * a, ()),
    "empty": (lambda a: a * a, (0, 3)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k), (1, 2, 3, 2), (1, 2, 4, 2)),
}


def case(f, shapes, g):
    x = [torch.randn(s, generator=g, dtype=torch.double) for s in shapes]
    v = [torch.randn(s, generator=g, dtype=torch.double) for s in shapes]
    y = f(*x)
    u = torch.randn(y.shape, generator=g, dtype=torch.double)
    out = {"y": y, "u": u}
    out["jvp"] = functional.jvp(f, tuple(x), tuple(v))[1]
    if y.numel():
        torch.testing.assert_close(out["jvp"], torch.func.jvp(f, tuple(x), tuple(v))[1])
    jacobian = functional.jacobian(f, tuple(x)) if y.numel() else [torch.zeros(y.shape + t.shape) for t in x]
    lists = {"x": x, "v": v, "vjp": functional.vjp(f, tuple(x), u)[1], "jacobian": jacobian}
    if y.numel() == 1:
        lists["hvp"] = functional.hvp(f, tuple(x), tuple(v))[1]
        hessian = functional.hessian(f, tuple(x))
        out |= {f"hessian.{i}.{j}": h for i, row in enumerate(hessian) for j, h in enumerate(row)}
    return out | {f"{n}.{i}": t for n, ts in lists.items() for i, t in enumerate(ts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "tensor/testdata")
    args = parser.parse_args()
    common.deterministic(7)
    g = torch.Generator().manual_seed(7)
    tensors = {}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        for name, (f, *shapes) in FUNCTIONS.items():
            tensors |= {f"{name}:{n}": t.detach() for n, t in case(f, shapes, g).items()}
    common.save_tensors(args.dir / "jacobian.safetensors", tensors)
    common.save_json(args.dir / "jacobian.json", {"versions": common.versions(), "cases": list(FUNCTIONS)})


if __name__ == "__main__":
    main()

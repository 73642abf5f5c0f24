"""PyTorch's side of the random comparison: reads the cases that `go run ./bench/pytorch/compare` wrote, computes each
with PyTorch and compares values and derivatives.

    python compare.py CASES.jsonl [--golden FILE]

Exit status 1: there are differences that neither PURPOSE names nor DEFINED has. With --golden the cases, with PyTorch's results in place
of ours, go to FILE, and only those on which both agree.
"""

import argparse
import collections
import itertools
import json
import math
import re
import sys

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

DTYPES = {"bool": torch.bool, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64,
          "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
NAMES = {v: k for k, v in DTYPES.items()}

# Differences on purpose: op, or op and dtype of its first operand → patterns of what differs, each with why. docs/pytorch.md says
# the same to users. Every element that differs has to match one of them.
PURPOSE = {
    "cross_entropy": {"dtype f32": "losses of 16-bit logits are float32, as under autocast",
                      "is 0, PyTorch nan": "a row with the ignored label has no gradient, whatever its logits"},
    "var": {"^second .* is nan, PyTorch 0 ": "0/0 has no slope of any order; PyTorch chooses NaN as a constant",
            "^grads .* is nan, PyTorch -?inf": "inf - inf has no slope; PyTorch's formula does not see the term of the mean"},
    # Of prod and cumprod against PyTorch and the definition alike: near where the product overflows, which it does sooner or later by the order.
    "prod": {r"^second .* is (nan|-?inf), PyTorch -?([0-9.]+e\+(3|[0-9]{3})|inf)": "infinite terms, of both signs or one; PyTorch adds before it multiplies",
             r"^grads .* is (-?)inf, PyTorch \1[0-9.]+e\+(3|[0-9]{3})": "the others' product is infinite before it is multiplied by the gradient"},
    "logsumexp": {"^(grads|second) .* is 0, PyTorch nan at -inf": "of -inf alone, whose sum is 0: no element adds to it"},
    "pow": {"^second .* is 0, PyTorch nan": "0^y is 0 on both sides of a positive y; PyTorch has 0·log(0) in what it hides"},
    "pow_num": {"PyTorch nan at -inf": "IEEE's pow of -inf is infinite or 0; PyTorch takes square roots for 0.5 and -0.5",
                "is inf, PyTorch -inf at -0\\.0 ": "likewise of -0"},
    "gelu": {"^out .* is inf, PyTorch nan at inf": "the value at infinity; on some processors PyTorch's erf is NaN there"},
    "linear_act": {"PyTorch nan": "GELU at infinity, where its value and slope are their limits; PyTorch has NaN"},
    "gelu_tanh": {"PyTorch nan at -?inf": "the slope at infinity is its limit; PyTorch has 0·inf"},
    "lgamma": {"^grads .* PyTorch .* at -(inf|[0-9]+ )": "a pole; PyTorch's sine of whole multiples of pi is not 0"},
    "digamma": {"^grads .* at -[0-9i]": "near a pole; PyTorch's sine of pi times a number has fewer digits, or is infinite"},
    "trigamma": {" at -[0-9i]": "likewise", "PyTorch nan at inf": "0 at infinity; PyTorch's zeta is NaN there"},
    "softsign": {"PyTorch nan at -?inf": "the slope at infinity is its limit; PyTorch has inf/inf"},
    "norm_p": {"^(grads|second) .* (is nan,|PyTorch nan)": "of an infinite or NaN element; PyTorch's formulas differ by the order"},
    "scatter_reduce": {"^(grads|second) .* PyTorch nan": "of products the others are multiplied; PyTorch divides: inf/inf, 0/0",
                       "^(grads|second) .* is nan, PyTorch -?inf": "of products: an infinite element times 0, or infinite terms of both signs"},
    "scatter_reduce_prod": {"^(grads|second) .* PyTorch nan": "the others are multiplied; PyTorch divides: inf/inf, NaN/NaN",
                            "^(grads|second) .* is nan, PyTorch -?inf": "an infinite element times 0, or infinite terms of both signs"},
    "scatter_reduce_prod f16": {r"^(grads|second) .* is -?[0-9.]+, PyTorch -?inf": "the others are multiplied in float32; PyTorch's gradient times the product overflows"},
    "digamma f16": {r"^grads .* is -?[0-9.]+, PyTorch -?inf": "the slope is rounded when it is multiplied; PyTorch's overflows before"},
    "float_power": {"^second .* PyTorch nan": "likewise of 0^y"},
    "fmod": {"^second .* is nan, PyTorch 0": "of an infinite quotient: 0·inf"},
    "signbit": {" at nan": "a NaN has no sign here"},
    "sinc": {"^(grads|second) .* at -?(0|[0-9.]+e-)": "near 0 PyTorch's formula cancels, and at 0 it chooses 0 as a constant"},
    "softplus": {"is nan, PyTorch .* at inf": "the recipe is logsumexp, which has this in PyTorch too"},
    "elu": {"is nan, PyTorch .* at nan": "the slope at NaN is NaN; PyTorch has that of the branch that a comparison with NaN takes"},
    "bce_with_logits": {"^out .* is inf, PyTorch nan": "a logit of -inf against its target costs infinity; PyTorch has inf - inf"},
}

# Relative errors of values, by dtype; gradients may be off by 20 times as much, relative to the largest of theirs.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def dims(x, axes):
    return [a % x.dim() for a in axes] if axes else list(range(x.dim()))


def reduce(f):
    """A reduction over some dimensions; none named means all."""
    return lambda i, a: f(i[0], dims(i[0], a.get("axes") or []))


def prod(x, axes):
    """One product over some dimensions. Of 16-bit values it is rounded once, as on PyTorch's GPUs; its CPU multiplies in f16."""
    if not x.is_floating_point():
        x = x.long()
    if not axes:
        return x
    row = x.movedim(axes, list(range(-len(axes), 0))).flatten(-len(axes))
    return row.float().prod(-1).to(x.dtype) if x.dtype in (torch.float16, torch.bfloat16) else row.prod(-1)


def shifted(x, k):
    """The elements of the last dimension k places on, or back if k is below 0, and 1 in the free places."""
    n = x.shape[-1]
    return F.pad(x[..., :max(n - k, 0)], (min(k, n), 0), value=1) if k > 0 else F.pad(x[..., min(-k, n):], (0, min(-k, n)), value=1)


def running(x, way):
    """Running products along the last dimension from its start, or its end if way is -1, of twice as many elements in each round."""
    k = 1
    while k < x.shape[-1]:
        x, k = x * shifted(x, way * k), 2 * k
    return x


class Product(torch.autograd.Function):
    """A product over the last dimension, with the product of the others for derivative, which is divided by nothing."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.prod(-1)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g.unsqueeze(-1) * (running(shifted(x, 1), 1) * running(shifted(x, -1), -1))


def defined_prod(wide):
    def run(x, axes):
        if not axes or not x.is_floating_point():
            return prod(x, axes)
        return Product.apply(x.movedim(axes, list(range(-len(axes), 0))).flatten(-len(axes)).to(wide(x.dtype))).to(x.dtype)
    return run


def defined_cumprod(wide):
    def run(x, axis):
        if not x.is_floating_point():
            return torch.cumprod(x, axis)
        return running(x.to(wide(x.dtype)).movedim(axis, -1), 1).movedim(-1, axis).to(x.dtype)
    return run


def defined_pow(i, a):
    """In float64, where whole numbers make a constant of it: 0^y is 0 for y above 0, and x^0 is 1, whatever x."""
    x, y = i
    fixed = torch.zeros(torch.broadcast_shapes(x.shape, y.shape), dtype=torch.bool)
    if not y.is_floating_point():
        fixed = fixed | (y == 0)
    elif not x.is_floating_point():
        fixed = fixed | (x == 0) & (y > 0)
    power = torch.where(fixed, 1, x.double()) ** torch.where(fixed, 1, y.double())
    return torch.where(fixed, (y == 0).double(), power).to(torch.result_type(x, y))


def defined_bce(i, a):
    """x·((x ≥ 0) - y) + log(1 + e^-|x|) in float64, for any x; what is infinite against its target costs infinity."""
    x, y = i[0].double(), i[1].double()
    up = x >= 0
    loss = x * (up.double() - y) + torch.where(up, -x, x).exp().log1p()
    return {"none": loss, "sum": loss.sum(), "mean": loss.mean()}[word(a)].to(i[0].dtype)


# What products may overflow in: float64, or what statistics are computed in.
WIDTHS = (lambda dt: torch.float64, lambda dt: dt if dt.itemsize > 2 else torch.float32)


def every(f):
    def run(x, axes):
        for d in sorted(axes, reverse=True):
            x = f(x, d)
        return x.bool()
    return run


def summed(x, axes):
    return x.sum(axes) if x.dim() else x.sum()


def axis(f):
    return lambda i, a: f(i[0], a.get("axis", 0))


def word(a):
    return a.get("word") or "mean"


def loss(f):
    def run(i, a):
        y = i[1]
        return f(i[0], y, reduction=word(a))
    return run


def cross_entropy(i, a):
    return F.cross_entropy(i[0], i[1], reduction=word(a), ignore_index=a.get("axis", 0), label_smoothing=a.get("p", 0))


def cross_entropy_rows(i, a, reduction="none"):
    """Of logits, or of what makes them and its weight."""
    logits = F.linear(i[0], i[2]) if len(i) > 2 else i[0]
    return F.cross_entropy(logits, i[1], reduction=reduction, ignore_index=a.get("axis", 0), label_smoothing=a.get("p", 0))


def cross_entropy_mean(i, a):
    return cross_entropy_rows(i, a, "mean")


def cross_entropy_total(i, a):
    return [cross_entropy_rows(i, a, "sum"), (i[1] != a.get("axis", 0)).sum()]


def self_attention(i, a):
    q, k, v = (x.transpose(1, 2) for x in i[0].unbind(2))
    return attention((q, k, v), a).transpose(1, 2)


def attention(i, a):
    mask = i[3] if len(i) > 3 else None
    q, k, v = i[:3]
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ k.transpose(-1, -2)) * (a.get("p") or 1 / math.sqrt(q.shape[-1]))
    left, right, start = a.get("n") or (-1, -1, 0)
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if a.get("word") == "causal":
        seen = seen.tril(start)
    if left >= 0:
        seen = seen.triu(start - left)
    if right >= 0:
        seen = seen.tril(start + right)
    scores = scores.masked_fill(~seen, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


def rotary(i, a):
    """The definition; nn/testdata has Transformers' own. Angles are at least float32."""
    x, (width, start) = i[0], a["n"]
    x, rest = x[..., :width], x[..., width:]
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    angle = torch.arange(start, start + x.shape[-2]).to(wide)[:, None] * a["p"] ** (-torch.arange(0, width, 2, dtype=wide) / width)
    sin, cos = (f(angle).to(x.dtype) for f in (torch.sin, torch.cos))
    if a.get("flag"):
        one, other = x[..., 0::2], x[..., 1::2]
        y = torch.stack((one * cos - other * sin, other * cos + one * sin), -1).flatten(-2)
    else:
        one, other = x.chunk(2, -1)
        y = torch.cat((one * cos - other * sin, other * cos + one * sin), -1)
    return torch.cat((y, rest), -1)


def conv1d(i, a):
    n = a["n"]
    return F.conv1d(i[0], i[1], i[2] if len(i) > 2 else None, *n)


def conv_transpose1d(i, a):
    stride, padding, dilation, groups, more = a["n"]
    return F.conv_transpose1d(i[0], i[1], i[2] if len(i) > 2 else None, stride, padding, more, groups, dilation)


def interpolate(i, a):
    """In float32 where values are narrower, rounded once."""
    smooth = a["word"] in ("bilinear", "bicubic")
    kw = {"align_corners": a.get("q", 0) == 1, "antialias": a.get("p", 0) == 1} if smooth else {}
    if a.get("axes"):
        kw |= {"scale_factor": [q / 4 for q in a["axes"]], "recompute_scale_factor": a.get("flag", False)}
    else:
        kw["size"] = a["n"]
    x = i[0]
    return F.interpolate(x.float() if x.itemsize < 4 else x, mode=a["word"], **kw).to(x.dtype)


def by_tap(x, w, groups):
    """Products of every place of x with w[out, in of a group], summed over the channels of a group one by one."""
    n, _, *size = x.shape
    w = w.reshape(1, groups, w.shape[0] // groups, w.shape[1], 1, 1)
    return (x.reshape(n, groups, 1, -1, *size) * w).sum(3).flatten(1, 2)


def defined_conv(x, w, bias, stride, padding, dilation, groups):
    """What a convolution of pictures is, in float64: each tap that meets a result is a product, and nothing else is."""
    kept, (x, w) = x.dtype, (x.double(), w.double())
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    last = [(n - d * (k - 1) - 1) // s * s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation)]
    y = 0 if bias is None else bias.double().reshape(1, -1, 1, 1)
    for r, c in itertools.product(*map(range, w.shape[2:])):
        top, left = r * dilation[0], c * dilation[1]
        y = y + by_tap(x[:, :, top:top + last[0]:stride[0], left:left + last[1]:stride[1]], w[:, :, r, c], groups)
    return y.to(kept)


def defined_conv_transpose(x, w, bias, stride, padding, more, groups, dilation):
    """Likewise the transpose of a convolution: each tap adds its products where they fall."""
    kept, (x, w) = x.dtype, (x.double(), w.double())
    w = w.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
    last = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], stride)]
    full = [n + d * (k - 1) + m for n, k, d, m in zip(last, w.shape[2:], dilation, more)]
    y = x.new_zeros(x.shape[0], w.shape[0], *full)
    for r, c in itertools.product(*map(range, w.shape[2:])):
        top, left = r * dilation[0], c * dilation[1]
        y[:, :, top:top + last[0]:stride[0], left:left + last[1]:stride[1]] += by_tap(x, w[:, :, r, c], groups)
    y = y[:, :, padding[0]:full[0] - padding[0], padding[1]:full[1] - padding[1]]
    return (y if bias is None else y + bias.double().reshape(1, -1, 1, 1)).to(kept)


def places(i, a):
    """Indices of the dimensions that n names, None for others."""
    named = a["n"]
    return [i[1 + named.index(d)] if d in named else None for d in range(named[-1] + 1)]


def index_put(i, a):
    """16-bit values that are added up are rounded twice: their sum, and the whole."""
    x, values, added = i[0], i[-1], a.get("flag", False)
    if added and x.is_floating_point() and x.itemsize == 2:
        x, values = x.float(), values.float()
    return torch.ops.aten.index_put(x, places(i, a), values, added).to(i[0].dtype)


def number(f):
    return lambda i, a: f(i[0], a["n"][0])


def scatter_reduce(i, a):
    """Without its own value an element takes no part: PyTorch counts it among equal extremes all the same."""
    x, index, src = i
    axis, by, own = a.get("axis", 0), a["word"], a.get("flag", False)
    if not own and by in ("amax", "amin") and x.is_floating_point():
        hit = torch.zeros(x.shape, dtype=torch.bool).scatter(axis, index, True)
        x = x.masked_fill(hit, math.nan)
    return x.scatter_reduce(axis, index, src, by, include_self=own)


def masked_scatter(i, a):
    """PyTorch's differentiates to the second order only what was broadcast before."""
    return torch.masked_scatter(i[0].expand(i[1].shape), i[1], i[2])


def third(i):
    return i[2] if len(i) > 2 else None


def weights_of(i, a, axis):
    """The weights of each result along an axis, as PyTorch has them: what it makes of the unit vectors."""
    n = i[0].shape[2 + axis]
    unit = torch.eye(n, dtype=i[0].dtype if i[0].itemsize > 4 else torch.float32).reshape(1, n, n, 1).expand(-1, -1, -1, 2)
    a = dict(a, n=[a["n"][axis], 2]) if not a.get("axes") else dict(a, axes=[a["axes"][axis], 4])
    return interpolate([unit], a)[0, :, :, 0].double().t()


def beside(w):
    """The element that each result multiplies by 0 where it lies on another: the next one, or the last."""
    zeros = torch.zeros_like(w, dtype=torch.bool)
    for o, k in (w * (w != 0).sum(1, keepdim=True).eq(1)).nonzero().tolist():
        zeros[o, min(k + 1, w.shape[1] - 1)] = True
    return zeros


def defined_interpolate(multiplied):
    """Sums of the elements whose weights are more than the rounding of places, in float64. Along the axes that are named, of all
    weights, and of 0 times the neighbours that do not count, which is NaN where these are infinite."""
    def run(i, a):
        x = i[0].double()
        for axis in (0, 1):
            w = weights_of(i, a, axis)
            x = x.movedim(2 + axis, -1).unsqueeze(-2)
            y = torch.where(w.abs() <= (0 if axis in multiplied else 1e-5), 0, x * w).sum(-1)
            if axis in multiplied and a["word"] == "bilinear":
                y = y + torch.where(beside(w), x * 0, 0).sum(-1)
            x = y.movedim(-1, 2 + axis)
        return x.to(i[0].dtype)
    return run


def windows(i, a):
    n = a["n"]
    return dict(kernel_size=n[0:2], stride=n[2:4], padding=n[4:6], dilation=n[6:8])


SMOOTH = (lambda x: x, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu)


def linear_act(i, a):
    wide = [v if v.dtype == torch.float64 else v.float() for v in i]
    return SMOOTH[a.get("axis", 0)](F.linear(*wide)).to(i[0].dtype)  # rounded once


def add_layer_norm(i, a):
    x, f, w, b = i
    return [x + f, F.layer_norm(x + f, w.shape, w, b, 1e-3)]


def batch_norm(i, a):
    x, w, b = i
    y = F.batch_norm(x, None, None, w, b, True, 0.1, 1e-3)
    wide = x.detach().to(w.dtype)
    return [y, wide.mean((0, 2)), wide.var((0, 2), correction=0)]


def batch_norm_act(i, a):
    x, w, b, r = i
    y, mean, var = batch_norm((x.to(w.dtype), w, b), a)
    return [F.relu(y + r).to(x.dtype), mean, var]  # rounded once


def batch_norm_eval_act(i, a):
    x, *rest, r = i
    return F.relu(F.batch_norm(x.to(r.dtype if r.dtype == torch.float64 else torch.float32), *rest, False, 0.1, 1e-3) + r).to(x.dtype)


def conv(i, a):
    n = a["n"]
    return F.conv2d(i[0], i[1], i[2] if len(i) > 2 else None, n[0:2], n[2:4], n[4:6], n[6])


def pool(f, **kw):
    return lambda i, a: f(i[0], a["n"][0:2], a["n"][2:4], a["n"][4:6], **kw)


def layer_norm(i, a):
    return F.layer_norm(i[0], i[1].shape, i[1], i[2] if len(i) > 2 else None, 1e-3)


def narrow(i, a):
    ax, (lo, hi, step) = a.get("axis", 0), a["n"]
    index = [slice(None)] * i[0].dim()
    index[ax] = slice(lo, hi, step)
    return i[0][tuple(index)]


def pad(i, a):
    x, (before, after) = i[0], a["n"]
    ax = a.get("axis", 0) % x.dim()
    spec = [0, 0] * (x.dim() - ax - 1) + [before, after]
    return F.pad(x, spec, value=a.get("p", 0))


def written(f):
    def run(i, a):
        h, u = i[0].clone(), i[1]
        if a.get("flag"):
            h = i[0] * 1.5
        if a["n"][0] == 1:
            u = u * 0.5
        if u.is_floating_point() and h.is_floating_point():
            u = u.to(h.dtype)  # of another dtype it is rounded before the operation: docs/pytorch.md
        v = {"whole": lambda: h, "rows": lambda: h[1:], "column": lambda: h[:, 1],
             "transposed": lambda: h.t(), "row of columns": lambda: h[:, 1:][0]}[a["word"]]()
        f(v, u)
        return [h.square(), v.sigmoid()] if a["n"][1] == 1 else h.square()
    return run


def trigamma(x):
    """PyTorch's polygamma(1, x) has nine digits in float64 where its zeta(2, x) has all."""
    up = x > 0
    wide = x if x.dtype == torch.float64 else x.float()
    return torch.where(up, torch.special.zeta(2.0, torch.where(up, wide, 1)), torch.polygamma(1, torch.where(up, 1, wide))).to(x.dtype)


def one(f):
    return lambda i, a: f(i[0])


def two(f):
    return lambda i, a: f(i[0], i[1])


def with_number(f):
    return lambda i, a: f(i[0], scalar(a.get("p", 0)))


def scalar(v):
    """A Python int where the number is whole: PyTorch's rule for integers."""
    return int(v) if float(v).is_integer() else v


OPS = {
    **{n: one(getattr(torch, n)) for n in ("neg", "abs", "sign", "floor", "ceil", "round", "trunc", "relu", "square", "clone", "exp", "expm1",
                                           "sin", "cos", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "log", "log1p", "logical_not")},
    "gelu": one(F.gelu), "gelu_tanh": one(lambda x: F.gelu(x, approximate="tanh")), "silu": one(F.silu), "softsign": one(F.softsign), "mish": one(F.mish),
    "not": one(torch.logical_not), "cast": lambda i, a: i[0].to(DTYPES[a["word"]]),
    "scale": lambda i, a: i[0] * scalar(a.get("p", 0)), "add_num": lambda i, a: i[0] + scalar(a.get("p", 0)),
    "pow_num": lambda i, a: i[0] ** scalar(a.get("p", 0)),
    "clamp": lambda i, a: i[0].clamp(bound(a["p"]), bound(a["q"])),
    **{n: two(getattr(torch, n)) for n in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge")},
    "rem": two(torch.remainder), "floor_div": two(lambda x, y: torch.div(x, y, rounding_mode="floor")),
    "and": two(torch.logical_and), "or": two(torch.logical_or), "xor": two(torch.logical_xor),
    "lerp": lambda i, a: torch.lerp(*torch.broadcast_tensors(i[0], i[1]), a.get("p", 0)),
    "axpy": lambda i, a: torch.add(i[0], i[1], alpha=scalar(a["p"])),
    "where": lambda i, a: torch.where(i[2], i[0], i[1]),
    "sum": reduce(summed), "mean": reduce(lambda x, d: x.mean(d) if d else x.mean()), "prod": reduce(prod),
    "amax": reduce(lambda x, d: x.amax(d)), "amin": reduce(lambda x, d: x.amin(d)),
    "any": reduce(every(torch.any)), "all": reduce(every(torch.all)),
    "argmax": axis(torch.argmax), "argmin": axis(torch.argmin), "cumsum": axis(torch.cumsum), "logsumexp": axis(torch.logsumexp),
    "softmax": axis(torch.softmax), "log_softmax": axis(torch.log_softmax),
    "var": lambda i, a: i[0].var(dims(i[0], a.get("axes") or []), correction=a.get("axis", 0)),
    "sum_squares": lambda i, a: sum(x.detach().to(torch.float64).square().sum() for x in i).to(
        torch.float64 if any(x.dtype == torch.float64 for x in i) else torch.float32),
    "reshape": lambda i, a: i[0].reshape(a.get("shape") or []), "permute": lambda i, a: i[0].permute(a.get("axes") or []),
    "transpose": lambda i, a: i[0].transpose(*a["n"]), "expand": lambda i, a: i[0].expand(a["shape"]), "slice": narrow,
    "select": lambda i, a: i[0].select(a.get("axis", 0), a["n"][0]), "split": lambda i, a: list(i[0].split(a["n"], a.get("axis", 0))),
    "cat": lambda i, a: torch.cat(i, a.get("axis", 0)), "stack": lambda i, a: torch.stack(i, a.get("axis", 0)), "pad": pad,
    "unsqueeze": axis(torch.unsqueeze), "squeeze": one(torch.squeeze), "flatten": axis(torch.flatten),
    "gather": lambda i, a: i[0].gather(a.get("axis", 0), i[1]),
    "scatter_add": lambda i, a: i[0].scatter_add(a.get("axis", 0), i[1], i[2]),
    "index_select": lambda i, a: i[0].index_select(a.get("axis", 0), i[1]), "embedding": two(lambda w, x: F.embedding(x, w)),
    "matmul": two(torch.matmul), "linear": lambda i, a: F.linear(*i), "linear_act": linear_act, "add_layer_norm": add_layer_norm, "conv2d": conv,
    "max_pool2d": pool(F.max_pool2d), "avg_pool2d": pool(F.avg_pool2d),
    **{n: attention for n in ("attention", "attention_causal", "attention_bool", "attention_added", "attention_shared")}, "rotary": rotary,
    "layer_norm": layer_norm, "rms_norm": two(lambda x, w: F.rms_norm(x, w.shape, w, 1e-3)), "batch_norm": batch_norm,
    "batch_norm_eval": lambda i, a: F.batch_norm(*i, False, 0.1, 1e-3),
    "batch_norm_act": batch_norm_act, "batch_norm_eval_act": batch_norm_eval_act,
    "mse": loss(F.mse_loss), "bce_with_logits": loss(F.binary_cross_entropy_with_logits), "cross_entropy": cross_entropy,
    "add_": written(lambda v, u: v.add_(u)), "sub_": written(lambda v, u: v.sub_(u)), "mul_": written(lambda v, u: v.mul_(u)),
    "div_": written(lambda v, u: v.div_(u)), "lerp_": written(lambda v, u: v.lerp_(u.to(v.dtype).expand_as(v), 0.3)), "axpy_": written(lambda v, u: v.add_(u, alpha=2)),
    "copy_": written(lambda v, u: v.copy_(u)), "scale_": written(lambda v, u: v.mul_(3)), "clamp_": written(lambda v, u: v.clamp_(-1, 1)),
    "fill_": written(lambda v, u: v.fill_(2)),
    **{f"{n}_num": with_number(getattr(torch, n)) for n in ("gt", "ge", "lt", "le", "eq", "ne")},
    **{n: one(getattr(torch, n)) for n in ("isnan", "isinf", "isfinite", "reciprocal", "frac")},
    "nan_to_num": lambda i, a: torch.nan_to_num(i[0], scalar(a.get("p", 0)), bound(a["q"]), bound(-a["q"])),
    "masked_fill": lambda i, a: i[0].masked_fill(i[1], scalar(a.get("p", 0))),
    "norm_p": lambda i, a: torch.linalg.vector_norm(i[0], a.get("p", 0), dims(i[0], a.get("axes") or []) or None),
    "chunk": lambda i, a: list(i[0].chunk(a["n"][0], a.get("axis", 0))), "unbind": lambda i, a: list(i[0].unbind(a.get("axis", 0))),
    "roll": lambda i, a: i[0].roll(a["n"][0], a.get("axis", 0)),
    "repeat_interleave": lambda i, a: i[0].repeat_interleave(a["n"][0], a.get("axis", 0)),
    **{n: lambda i, a, f=getattr(torch, n): f(i[0], a["n"][0]) for n in ("tril", "triu", "diag", "diag_embed")},
    "diagonal": lambda i, a: i[0].diagonal(*a["n"]), "flip": lambda i, a: i[0].flip(a.get("axes") or []),
    "repeat": lambda i, a: i[0].repeat(a.get("n") or []), "meshgrid": lambda i, a: list(torch.meshgrid(*i, indexing="ij")),
    "one_hot": lambda i, a: F.one_hot(i[0], a["n"][0]), "linspace": lambda i, a: torch.linspace(a.get("p", 0), a["q"], a["n"][0]),
    "eye": lambda i, a: torch.eye(*a["n"]), "take_along": lambda i, a: torch.take_along_dim(i[0], i[1], a.get("axis", 0)),
    "sort": lambda i, a: list(torch.sort(i[0], dim=a.get("axis", 0), descending=a.get("flag", False), stable=True)),
    "argsort": lambda i, a: torch.argsort(i[0], dim=a.get("axis", 0), descending=a.get("flag", False), stable=True),
    "topk": lambda i, a: list(i[0].topk(a["n"][0], a.get("axis", 0), a["n"][1] == 1)),
    "topk_values": lambda i, a: i[0].topk(a["n"][0], a.get("axis", 0), a["n"][1] == 1)[0],
    "kthvalue": lambda i, a: list(i[0].kthvalue(a["n"][0], a.get("axis", 0))),
    "median": lambda i, a: list(i[0].median(a.get("axis", 0))), "median_values": lambda i, a: i[0].median(a.get("axis", 0))[0],
    "cumprod": axis(torch.cumprod), "cummax": lambda i, a: list(i[0].cummax(a.get("axis", 0))), "cummin": lambda i, a: list(i[0].cummin(a.get("axis", 0))),
    "searchsorted": lambda i, a: torch.searchsorted(i[0], i[1], right=a.get("flag", False)),
    "bucketize": lambda i, a: torch.bucketize(i[0], i[1], right=a.get("flag", False)),
    "unique": lambda i, a: list(torch.unique(i[0], return_inverse=True, return_counts=True)),
    "bincount": lambda i, a: torch.bincount(i[0], i[1] if len(i) > 1 else None, minlength=a["n"][0]),
    "nonzero": one(torch.nonzero), "masked_select": two(torch.masked_select),
    "conv1d": conv1d, "conv_transpose1d": conv_transpose1d, "interpolate": interpolate,
    "cross_entropy_rows": cross_entropy_rows, "cross_entropy_mean": cross_entropy_mean, "linear_cross_entropy": cross_entropy_rows,
    "linear_cross_entropy_mean": cross_entropy_mean, "linear_cross_entropy_total": cross_entropy_total, "self_attention": self_attention,
    "arange": lambda i, a: torch.arange(a["n"][0]), "full": lambda i, a: torch.full(a.get("shape") or [], scalar(a.get("p", 0)), dtype=DTYPES[a["word"]]),
    "pad_mode": lambda i, a: F.pad(i[0], a["n"], a["word"], scalar(a.get("p", 0)) if a["word"] == "constant" else None),
    **{n: lambda i, a, f=getattr(F, n): f(i[0], a["n"][0]) for n in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")},
    "unfold": lambda i, a: F.unfold(i[0], **windows(i, a)), "fold": lambda i, a: F.fold(i[0], a["shape"], **windows(i, a)),
    "adaptive_avg_pool": lambda i, a: F.adaptive_avg_pool2d(i[0], a["n"]), "adaptive_max_pool": lambda i, a: F.adaptive_max_pool2d(i[0], a["n"]),
    **{n: one(getattr(torch, n)) for n in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "exp2", "log2", "log10", "erfinv", "lgamma", "digamma")},
    "trigamma": one(trigamma), "atan2": two(torch.atan2),
    "einsum": lambda i, a: torch.einsum(a["word"], *i),
    **{n: lambda i, a: i[0].scatter(a.get("axis", 0), i[1], i[2]) for n in ("scatter", "scatter_last")},
    "scatter_num": lambda i, a: i[0].scatter(a.get("axis", 0), i[1], scalar(a.get("p", 0))),
    "scatter_reduce": scatter_reduce, "scatter_reduce_prod": scatter_reduce,
    "index_add": lambda i, a: i[0].index_add(a.get("axis", 0), i[1], i[2]),
    **{n: lambda i, a: i[0].index_copy(a.get("axis", 0), i[1], i[2]) for n in ("index_copy", "index_copy_last")},
    "index_fill": lambda i, a: i[0].index_fill(a.get("axis", 0), i[1], scalar(a.get("p", 0))),
    **{n: index_put for n in ("index_put", "index_put_last", "index_put_added")},
    "index": lambda i, a: torch.ops.aten.index(i[0], places(i, a)), "index_mask": lambda i, a: i[0][i[1]],
    "masked_scatter": masked_scatter,
    "slice_scatter": lambda i, a: torch.slice_scatter(i[0], i[1], a.get("axis", 0), *a["n"]),
    "select_scatter": lambda i, a: torch.select_scatter(i[0], i[1], a.get("axis", 0), a["n"][0]),
    "diagonal_scatter": lambda i, a: torch.diagonal_scatter(i[0], i[1], *a["n"]),
    **{n: two(getattr(torch, f"bitwise_{m}")) for n, m in (("bit_and", "and"), ("bit_or", "or"), ("bit_xor", "xor"),
                                                           ("shift_left", "left_shift"), ("shift_right", "right_shift"))},
    **{n: number(getattr(torch, f"bitwise_{m}")) for n, m in (("bit_and_num", "and"), ("bit_or_num", "or"), ("bit_xor_num", "xor"),
                                                              ("shift_left_num", "left_shift"), ("shift_right_num", "right_shift"))},
    "bit_not": one(torch.bitwise_not),
    **{n: two(getattr(torch, n)) for n in ("gcd", "lcm", "xlogy", "logaddexp", "logaddexp2", "hypot", "fmod", "ldexp", "float_power",
                                           "heaviside", "fmax", "fmin")},
    "copysign": lambda i, a: torch.copysign(i[0], i[1].masked_fill(i[1].isnan(), math.nan)),  # a NaN has no sign here
    "xlog1py": two(torch.special.xlog1py), "lerp_tensor": lambda i, a: torch.lerp(*i),
    **{n: one(getattr(torch, n)) for n in ("erfc", "sinc", "signbit")},
    "leaky_relu": one(F.leaky_relu), "elu": one(F.elu), "softplus": one(F.softplus),
    "norm": lambda i, a: torch.linalg.vector_norm(i[0], dim=dims(i[0], a.get("axes") or []) or None),
    "conv_transpose2d": lambda i, a: F.conv_transpose2d(i[0], i[1], i[2] if len(i) > 2 else None, a["n"][0:2], a["n"][2:4], a["n"][7:9], a["n"][6], a["n"][4:6]),
}


# What is as right as PyTorch's results: those of the definitions. Its kernels multiply infinities by the zeros that fill blocks
# and by weights of 0, and some add in 16 bits. Where all of ours are those of one of these, a difference is on purpose.
DEFINED = {
    "conv1d": [lambda i, a: defined_conv(i[0].unsqueeze(2), i[1].unsqueeze(2), third(i), (1, a["n"][0]), (0, a["n"][1]), (1, a["n"][2]), a["n"][3]).squeeze(2)],
    "conv2d": [lambda i, a: defined_conv(i[0], i[1], third(i), a["n"][0:2], a["n"][2:4], a["n"][4:6], a["n"][6])],
    "conv_transpose1d": [lambda i, a: defined_conv_transpose(
        i[0].unsqueeze(2), i[1].unsqueeze(2), third(i), (1, a["n"][0]), (0, a["n"][1]), (0, a["n"][4]), a["n"][3], (1, a["n"][2])).squeeze(2)],
    "conv_transpose2d": [lambda i, a: defined_conv_transpose(i[0], i[1], third(i), a["n"][0:2], a["n"][2:4], a["n"][7:9], a["n"][6], a["n"][4:6])],
    "bce_with_logits": [defined_bce],
    "prod": [reduce(defined_prod(wide)) for wide in WIDTHS], "cumprod": [axis(defined_cumprod(wide)) for wide in WIDTHS], "pow": [defined_pow],
    "interpolate": [defined_interpolate(axes) for axes in ((), (0,), (1,), (0, 1))],
}


def surprises(c, what):
    """Those of the differences that are not on purpose."""
    known = [*PURPOSE.get(c["op"], ()), *PURPOSE.get(f'{c["op"]} {c["in"][0]["dtype"]}' if c["in"] else "", ())]
    return [w for w in what if not any(re.search(p, w) for p in known)]


def defined(c):
    """Whether ours is what one of the definitions gives, but for what is on purpose."""
    return any(not surprises(c, check(c, {c["op"]: f})[1]) for f in DEFINED.get(c["op"], ()))


def bound(v):
    return None if math.isinf(v) else scalar(v)


def lay(t, layout):
    """The values of t in another layout."""
    if layout == "transposed":
        return t.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "stepped":
        return torch.stack((t, t), -1).flatten(-2)[..., ::2]
    if layout == "offset":
        return torch.cat((t[:1], t))[1:]
    if layout == "expanded":
        return t[:1].expand(t.shape)
    return t


def build(o):
    data = [float(v) for v in o["data"]]
    return lay(torch.tensor(data, dtype=torch.float64).reshape(o["shape"]).to(DTYPES[o["dtype"]]), o["layout"]).detach()


def weight(k, i):
    return ((5 * i + 3 * k) % 11 + 2) / 8


def weighted(ts):
    total = None
    for k, t in enumerate(ts):
        if not t.is_floating_point() or not t.requires_grad:
            continue
        w = torch.tensor([weight(k, i) for i in range(t.numel())], dtype=torch.float64).reshape(t.shape)
        s = (t.to(torch.float64) * w).sum()
        total = s if total is None else total + s
    return total


def plain(v):
    """A number as compare.go writes it."""
    if math.isnan(v):
        return "NaN"
    return v if not math.isinf(v) else "+Inf" if v > 0 else "-Inf"


def value(t):
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data": [plain(v) for v in t.detach().double().clone().reshape(-1).tolist()]}


def grads(y, leaves, graph):
    gs = torch.autograd.grad(y, leaves, create_graph=graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gs)]


def compute(c, ops=OPS):
    """The tensors of a case: results, gradients, second gradients; and an error with the order it came at."""
    got = {"out": [], "grads": [], "second": []}
    stage = 0
    try:
        ins, leaves = [], []
        for o in c["in"]:
            t = build(o)
            if c["order"] > 0 and t.is_floating_point() and not o.get("fixed"):
                t = t.requires_grad_()
                leaves.append(t)
            ins.append(t)
        a = {k: float(v) if isinstance(v, str) and k in "pq" else v for k, v in c["attrs"].items()}
        out = ops[c["op"]](ins, a)
        got["out"] = out if isinstance(out, list) else [out]
        stage = 1
        total = weighted(got["out"])
        if c["order"] and total is not None and leaves:
            got["grads"] = grads(total, leaves, True)
            stage = 2
            total = weighted(got["grads"])
            if c["order"] == 2 and total is not None:
                got["second"] = grads(total, leaves, False)
            elif c["order"] == 2:
                got["second"] = [torch.zeros_like(x) for x in leaves]
    except (RuntimeError, IndexError, NotImplementedError, ValueError) as e:
        return got, (stage, str(e).splitlines()[0])
    return got, None


def differ(want, got, slack, narrowest, operand):
    """What differs between a tensor and a value of ours, by element. Gradients are as exact as the narrowest operand."""
    if NAMES.get(want.dtype) != got["dtype"]:
        return [f"dtype {got['dtype']}, PyTorch {NAMES.get(want.dtype, want.dtype)}"]
    if list(want.shape) != got["shape"]:
        return [f"shape {got['shape']}, PyTorch {list(want.shape)}"]
    w = want.detach().double().reshape(-1)
    g = torch.tensor([float(v) for v in got["data"]], dtype=torch.float64)
    if not want.is_floating_point():
        return describe(w, g, w != g, operand)
    tol = TOLERANCE[want.dtype] if slack == 1 else max(TOLERANCE[want.dtype], narrowest) * slack
    a, b = w, g
    if want.dtype == torch.float16:  # rounding decides what is beyond the largest number
        a, b = (v.clamp(-65504, 65504) for v in (w, g))
    finite = w[w.isfinite()].abs()
    scale = max(1.0, finite.max().item() if finite.numel() else 0) if slack > 1 else 1.0
    allowed = tol * (scale + a.abs().nan_to_num(posinf=0, neginf=0))
    return describe(w, g, ~((a == b) | (w.isnan() & g.isnan()) | ((a - b).abs() <= allowed)), operand)


def describe(w, g, bad, operand):
    """Words for each bad element; operand is that of an op of one, where it has an element for each."""
    at = [f" at {v}" for v in operand["data"]] if operand and len(operand["data"]) == len(w) else [""] * len(w)
    return [f"element {i} is {g[i].item():.8g}, PyTorch {w[i].item():.8g}{at[i].lower().replace('+', '')} "
            f"({int(bad.sum())} of {len(w)})" for i in bad.nonzero().reshape(-1).tolist()]


def check(c, ops=OPS):
    """How a case went, and what differs."""
    want, failed = compute(c, ops)
    ours = c["got"]
    if ours.get("err"):
        if failed and failed[0] <= ours.get("failed", 0):
            return "refused by both", []
        return "refused", [f"order {ours.get('failed', 0)}: {ours['err']}"]
    if failed and failed[0] == 0:
        return "PyTorch refuses", [failed[1]]
    narrowest = max([TOLERANCE[DTYPES[o["dtype"]]] for o in c["in"] if DTYPES[o["dtype"]] in TOLERANCE], default=0)
    operand = c["in"][0] if len(c["in"]) == 1 else None
    for part, slack, order in (("out", 1, 0), ("grads", 20, 1), ("second", 50, 2)):
        if failed and failed[0] <= order:
            return "PyTorch refuses", [failed[1]]
        have = ours.get(part) or []
        if len(have) != len(want[part]):
            if not have:  # ours has none where nothing depends on the operands
                have = [value(torch.zeros_like(x)) for x in want[part]]
            else:
                return "differs", [f"{len(have)} {part}, PyTorch {len(want[part])}"]
        found = [f"{part} {k}: {d}" for k, (w, g) in enumerate(zip(want[part], have)) for d in differ(w, g, slack, narrowest, operand)]
        if found:
            return "differs", found
    return "agrees", []


SHAPES = 5  # of operands of each op among the golden cases, with all derivatives that there are


def golden(cases, path):
    """Keeps the cases of each op that golden_test.go asks for, of those on which both agree, with PyTorch's results."""
    found = collections.defaultdict(list)
    for c in cases:
        if sum(len(o["data"]) for o in c["in"]) >= 25:
            continue
        how, _ = check(c)
        if how == "PyTorch refuses" and c["order"] == 2:  # which derives it once
            c["order"] = 1
            how, _ = check(c)
        if how == "agrees":
            want, _ = compute(c)
            c["got"] = {k: [short(value(t), result=True) for t in v] for k, v in want.items() if v}
            found[c["op"]].append(c)
    with open(path, "w") as f:
        for op in sorted(found):
            for c in chosen(found[op]):
                c["in"] = [short(o) for o in c["in"]]
                f.write(json.dumps(c, separators=(",", ":")) + "\n")


def depth(c):
    """How many derivatives a case compares, where any element has one."""
    learns = [o for o in c["in"] if DTYPES[o["dtype"]].is_floating_point and not o.get("fixed") and o["data"]]
    return len([part for part in ("grads", "second") if c["got"].get(part)]) if learns else 0


def shapes(c):
    return str([v["shape"] for v in c["in"] + c["got"]["out"]])


def chosen(cases):
    """SHAPES cases of different shapes among those that compare most, in float32 as far as there are any, and one of each of EDGES."""
    narrow = lambda c: any(o["dtype"] not in ("f32", "i64", "bool") for o in c["in"])
    kept, seen = [], set()
    for c in sorted(cases, key=lambda c: (-depth(c), narrow(c))):
        if len(kept) < SHAPES and shapes(c) not in seen and sum(len(o["data"]) for o in c["in"]) > 1:
            kept.append(c)
            seen.add(shapes(c))
    for edge in EDGES:
        if not any(map(edge, kept)):
            kept += [c for c in cases if edge(c)][:1]
    return sorted(kept, key=lambda c: c["id"])


def has(dtypes):
    return lambda c: any(o["dtype"] in dtypes for o in c["in"])


# What is easily got wrong, and is among the cases of each op that takes it.
EDGES = (
    has(("f64",)), has(("f16", "bf16")), has(("i32", "i64", "u8")),
    lambda c: any(isinstance(v, str) for o in c["in"] for v in o["data"]),  # infinities and NaN
    lambda c: any(0 in o["shape"] for o in c["in"]), lambda c: any(1 in o["shape"] for o in c["in"]), lambda c: any(not o["shape"] for o in c["in"]),
    lambda c: any(o["layout"] in ("transposed", "stepped", "offset") for o in c["in"]),
    lambda c: any(o["layout"] == "expanded" for o in c["in"]),
    lambda c: len({len(o["shape"]) for o in c["in"]}) > 1,  # broadcast
)


def short(v, result=False):
    """The value with as many digits as tell its dtype's numbers apart, or as are compared."""
    digits = {"f64": 13 if result else 17, "f32": 8 if result else 9}.get(v["dtype"], 5)
    if v["dtype"] in ("f64", "f32", "f16", "bf16"):
        v["data"] = [x if isinstance(x, str) else float(f"{x:.{digits}g}") for x in v["data"]]
        v["data"] = [int(x) if not isinstance(x, str) and x.is_integer() and abs(x) < 1e15 and (x or math.copysign(1, x) > 0) else x for x in v["data"]]
    return v


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases")
    parser.add_argument("--golden")
    parser.add_argument("--show", type=int, default=3, help="differences to print per op")
    args = parser.parse_args()
    with open(args.cases) as f:
        cases = [json.loads(line) for line in f]
    if args.golden:
        golden(cases, args.golden)
        return 0
    count = collections.defaultdict(collections.Counter)
    shown = collections.Counter()
    bad = 0
    for c in cases:
        how, what = check(c)
        count[c["op"]][how] += 1
        if how not in ("differs", "refused"):
            continue
        left = surprises(c, what)
        if not left or defined(c):
            count[c["op"]]["on purpose"] += 1
            continue
        bad += 1
        shown[c["op"]] += 1
        if shown[c["op"]] <= args.show:
            ins = ", ".join(f"{o['dtype']}{o['shape']} {o['layout']}" for o in c["in"])
            attrs = {k: v for k, v in c["attrs"].items()}
            print(f"{c['op']} case {c['id']} {how}: {left[0]}\n    {ins} {attrs}")
    heads = ["agrees", "differs", "refused", "on purpose", "refused by both", "PyTorch refuses"]
    print(f"\n{'op':18}" + "".join(f"{h:>17}" for h in heads))
    for op in sorted(count):
        print(f"{op:18}" + "".join(f"{count[op][h] or '':>17}" for h in heads))
    print(f"{len(cases)} cases of {len(count)} ops, {bad} differences that are not on purpose; torch {torch.__version__}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

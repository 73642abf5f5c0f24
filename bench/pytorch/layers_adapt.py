"""The cases of weight normalisation and of positions, for layers_reference.py."""

import math

import torch
import torch.nn as nn

import golden
from layers_losses import Maker


def weight_norm(m, make, x, dim):
    """A case by weight_norm's formula. torch._weight_norm computes the same, but takes norms as constants in its second derivatives."""
    make.double()
    v = m.randn(*make.weight.shape)
    g = m.rand(*[n if i == dim else 1 for i, n in enumerate(v.shape)], low=0.5, high=2.0)
    params = {"bias": m.randn(*make.bias.shape), "weight_g": g, "weight_v": v}

    def run(x, bias, weight_g, weight_v):
        weight = weight_v * (weight_g / torch.norm_except_dim(weight_v, 2, dim))
        if dim >= 0:
            torch.testing.assert_close(weight, torch._weight_norm(weight_v, weight_g, dim))
        return torch.func.functional_call(make, {"weight": weight, "bias": bias}, (x,))

    return f"weight_norm_{next(m.count)}", "weight_norm", {"dim": dim}, golden.record(run, {"x": x}, params, ["x", *params], m.g, second=True)


def rotary(x, positions, base, width, interleaved, stretch):
    """Transformers' apply_rotary_pos_emb, and Llama's by complex numbers for neighbours."""
    width = width or x.shape[-1]
    x, rest = x[..., :width], x[..., width:]
    rate = base ** (-torch.arange(0, width, 2, dtype=torch.double) / width)
    angle = positions.double()[..., None] / stretch * rate
    if interleaved:
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones_like(angle), angle)
        y = torch.view_as_real(turned).flatten(-2)
    else:
        angle = torch.cat((angle, angle), -1)
        a, b = x.chunk(2, -1)
        y = x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()
    return torch.cat((y, rest), -1)


def slopes(n):
    """As in the paper's code (get_slopes of attention_with_linear_biases)."""
    if math.log2(n).is_integer():
        start = 2 ** (-2 ** -(math.log2(n) - 3))
        return [start * start**i for i in range(n)]
    closest = 2 ** math.floor(math.log2(n))
    return slopes(closest) + slopes(2 * closest)[0::2][: n - closest]


def alibi(x, symmetric):
    t, s = x.shape[-2:]
    far = torch.arange(s, dtype=torch.double)[None] - torch.arange(s - t, s, dtype=torch.double)[:, None]
    far = -far.abs() if symmetric else far
    return x + torch.tensor(slopes(x.shape[1]), dtype=torch.double)[:, None, None] * far


def adapt(g):
    """Yields (name, layer, attrs, tensors)."""
    m = Maker(g)
    for dim in (0, 1, -1):
        yield weight_norm(m, nn.Linear(3, 5), m.randn(2, 3), dim)
        yield weight_norm(m, nn.Linear(1, 4), m.randn(3, 2, 1), dim)
        yield weight_norm(m, nn.Conv2d(2, 3, 2), m.randn(1, 2, 4, 3), dim)
        yield weight_norm(m, nn.Conv1d(3, 2, 3), m.randn(2, 3, 5), dim)
        yield weight_norm(m, nn.Linear(7, 1), m.randn(2, 7), dim)
    for i, shape in enumerate(((2, 3, 5, 4), (1, 1, 7, 2), (3, 2, 8), (5, 6), (2, 2, 3, 1, 10))):
        for base, width, interleaved, stretch in ((10000.0, 0, False, 1.0), (10000.0, 0, True, 1.0), (500.0, 2, False, 4.0), (100.0, 2, True, 2.0)):
            t = shape[-2]
            positions = torch.randint(0, 50, (t,) if i % 2 else (shape[0], *[1] * (len(shape) - 3), t), generator=g) if len(shape) > 2 else torch.arange(3, 3 + t)
            yield m.case("rotary", lambda v, base, width, interleaved, stretch: rotary(v["x"], v["positions"], base, width, interleaved, stretch), ["x"],
                         {"x": m.randn(*shape), "positions": positions}, i < 2, base=base, width=width, interleaved=interleaved, stretch=stretch)
    for shape in ((1, 8, 3, 3), (2, 1, 4, 4), (1, 6, 2, 5), (2, 12, 1, 7), (1, 3, 5, 5)):
        for symmetric in (False, True):
            yield m.case("alibi", lambda v, symmetric: alibi(v["x"], symmetric), ["x"], {"x": m.randn(*shape)}, False, symmetric=symmetric)

"""The cases of the layers and losses that nearly every model has, for layers_reference.py: shapes with no rows, one, primes, with second derivatives."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import golden
from layers_activation import module
from layers_attention import attention as scores
from layers_attention import stack
from layers_losses import REDUCTIONS, Maker
from layers_recurrent import case as recurrent
from layers_spatial import call, layer

# No rows, one number, a prime, more dimensions than layers need.
SHAPES = ((0, 3), (1,), (7,), (3, 5), (2, 1, 4), (1, 2, 3, 2))


def core(g):
    """Yields (name, layer, attrs, tensors)."""
    m = Maker(g)
    for lead, width, out, bias in (((4,), 5, 3, True), ((), 7, 2, True), ((0,), 3, 4, True), ((2, 3), 1, 5, False), ((1, 1, 2), 3, 1, True), ((11,), 2, 2, False)):
        yield module(m, nn.Linear(width, out, bias), {"x": m.randn(*lead, width)})
    for lead, shape, eps in (((2, 3), (6,), 1e-5), ((), (5,), 1e-5), ((0,), (3,), 1e-5), ((2,), (3, 4), 1e-2), ((7, 1), (3,), 1e-5), ((1, 2, 2), (2, 1, 3), 0.3)):
        yield module(m, nn.LayerNorm(shape, eps), {"x": 1 + m.randn(*lead, *shape)}, eps=eps)
        yield module(m, nn.RMSNorm(shape, eps), {"x": m.randn(*lead, *shape)}, eps=eps)
    for rows, width, shape in ((7, 4, (2, 3)), (1, 1, (5,)), (3, 5, ()), (5, 3, (0,)), (11, 2, (2, 1, 3)), (2, 7, (1, 1))):
        index = torch.randint(0, rows, shape, generator=g)
        yield module(m, nn.Embedding(rows, width), {"index": index})
    yield from pools(m)
    yield from batch_norms(m)
    yield from plain(m)
    yield from attention(m)
    yield from losses(m)


def pools(m):
    """Pictures whose numbers are all apart: at ties the largest is a convention."""
    for shape, kernel, stride, padding in (((2, 2, 5, 6), 2, 2, 0), ((1, 3, 7, 8), 3, 2, 1), ((3, 1, 3, 3), 3, 1, 0), ((1, 1, 11, 2), 2, 3, 1), ((2, 5, 4, 1), 1, 2, 0), ((3, 7, 5), 3, 2, 1)):
        x = golden.exact(torch.randperm(torch.tensor(shape).prod(), generator=m.g).reshape(shape).double() / 4)
        attrs = dict(kernel=kernel, stride=stride, padding=padding)
        yield module(m, nn.MaxPool2d(kernel, stride, padding), {"x": x}, **attrs)
        for counted in (True, False):
            yield module(m, nn.AvgPool2d(kernel, stride, padding, count_include_pad=counted), {"x": m.randn(*shape)}, count_include_pad=counted, **attrs)
    for shape in ((2, 3, 4, 5), (1, 1, 1, 1), (5, 2, 1, 7), (1, 7, 3, 3), (3, 1, 2, 11), (2, 3, 5)):
        yield module(m, nn.AdaptiveAvgPool2d(1), {"x": m.randn(*shape)}, output=1)


def batch_norms(m):
    """Two updates in training, then evaluation with the statistics they left."""
    for make, shape, eps, momentum in ((nn.BatchNorm1d, (6, 4), 1e-5, 0.1), (nn.BatchNorm1d, (2, 3, 7), 1e-5, 0.1), (nn.BatchNorm1d, (3, 1), 0.2, 0.5),
                                       (nn.BatchNorm2d, (4, 3, 5, 2), 1e-5, 0.1), (nn.BatchNorm2d, (2, 2, 3, 3), 1e-2, 0.3), (nn.BatchNorm2d, (1, 5, 1, 7), 1e-5, 0.1)):
        c = shape[1]
        norm = make(c, eps, momentum).double()
        params = {"weight": golden.exact(1 + m.randn(c, scale=0.3)), "bias": m.randn(c, scale=0.3)}
        buffers = {"running_mean": m.randn(c, scale=0.3), "running_var": golden.exact(1 + m.randn(c).abs())}
        norm.load_state_dict({**params, **buffers, "num_batches_tracked": torch.tensor(0)})
        inputs = {"x1": golden.exact(3 + 2 * m.randn(*shape)), "x2": golden.exact(m.randn(*shape) - 5), "x3": m.randn(*shape)}
        after = {}

        def run(x1, x2, x3, weight, bias):
            outs = []
            for i, x in enumerate((x1, x2, x3), 1):
                norm.train(i < 3)
                outs.append(torch.func.functional_call(norm, {"weight": weight, "bias": bias}, x))
                if i < 3:
                    after[f"out.running_mean{i}"], after[f"out.running_var{i}"] = norm.running_mean.clone(), norm.running_var.clone()
            return tuple(outs)

        case = golden.record(run, inputs, params, [*inputs, *params], m.g, outputs=("y1", "y2", "y3"), second=True)
        kind = make.__name__
        yield f"{kind}_{next(m.count)}", kind, dict(features=c, eps=eps, momentum=momentum), {**case, **{f"buffer.{n}": b for n, b in buffers.items()}, **after}


# Those of layers_activation.py, which are there in other shapes, once with no rows and once without a dimension.
EMPTY = (("leaky_relu", F.leaky_relu, dict(negative_slope=0.2)), ("elu", F.elu, dict(alpha=0.4)), ("celu", F.celu, dict(alpha=0.4)), ("selu", F.selu, {}),
         ("softplus", F.softplus, dict(beta=3.0, threshold=2.0)), ("logsigmoid", F.logsigmoid, {}), ("mish", F.mish, {}), ("softsign", F.softsign, {}),
         ("tanhshrink", F.tanhshrink, {}), ("relu6", F.relu6, {}), ("hardsigmoid", F.hardsigmoid, {}), ("hardswish", F.hardswish, {}),
         ("hardshrink", F.hardshrink, dict(lambd=0.5)), ("softshrink", F.softshrink, dict(lambd=0.5)), ("hardtanh", F.hardtanh, dict(min_val=-1.0, max_val=0.5)),
         ("threshold", F.threshold, dict(threshold=0.5, value=2.0)))


def plain(m):
    """Layers without options, and activations of nothing."""
    kinds = {"ReLU": F.relu, "GELU": F.gelu, "GELUTanh": lambda x: F.gelu(x, approximate="tanh"), "SiLU": F.silu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh,
             "Softmax": lambda x: x.softmax(-1), "Identity": lambda x: x}
    for kind, f in kinds.items():
        for shape in SHAPES:
            yield m.case(kind, lambda t: f(t["x"]), ["x"], {"x": m.randn(*shape, scale=3)})
    for kind, f, attrs in EMPTY:
        for shape in ((0, 3), ()):
            yield m.case(kind, lambda t, **a: f(t["x"], **a), ["x"], {"x": m.randn(*shape)}, kind != "hardsigmoid", **attrs)  # which PyTorch derives once
    for shape in ((2, 3, 4), (1, 1), (0, 5, 2), (3, 2, 1, 5), (7, 1, 1, 1, 2)):
        yield m.case("Flatten", lambda t: t["x"].flatten(1), ["x"], {"x": m.randn(*shape)})


def attention(m):
    """MultiheadAttention, batch first, on itself, with causal masks, hidden keys and both."""
    for i, (n, t, heads, width) in enumerate(((2, 5, 3, 6), (1, 1, 1, 3), (3, 2, 2, 4), (1, 7, 2, 2), (2, 3, 5, 5))):
        for causal, hidden, bias in ((False, False, True), (True, False, i % 2 == 0), (False, True, True), (True, True, False)):
            layer = nn.MultiheadAttention(width, heads, bias=bias, batch_first=True).double()
            params = {n: m.randn(*p.shape, scale=0.3) for n, p in layer.named_parameters()}
            inputs = {"x": m.randn(n, t, width)}
            if hidden:
                inputs["key_padding_mask"] = torch.rand((n, t), generator=m.g) < 0.4
                inputs["key_padding_mask"][:, 0] = False
            ban = torch.ones(t, t, dtype=torch.bool).triu(1) if causal else None

            def run(x, key_padding_mask=None, **p):
                # With weights the products are written out, and derived twice.
                return torch.func.functional_call(layer, p, (x, x, x), {"attn_mask": ban, "key_padding_mask": key_padding_mask})[0]

            yield f"MultiheadAttention_{next(m.count)}", "MultiheadAttention", dict(embed=width, heads=heads, causal=causal, bias=bias), golden.record(run, inputs, params, ["x", *params], m.g, second=True)


def losses(m):
    shapes = ((3, 5), (1,), (), (2, 1, 4), (7,))
    for shape in (*shapes, (0, 3)):
        for reduction in REDUCTIONS if 0 not in shape else ("sum", "none"):
            yield m.case("mse_loss", lambda t, reduction: F.mse_loss(t["x"], t["target"], reduction=reduction), ["x", "target"],
                         {"x": m.randn(*shape), "target": m.randn(*shape)}, reduction=reduction)
    for shape in ((3, 5), (1, 1), (7,), (2, 3, 4), (1, 11)):
        for p, eps in ((2.0, 1e-6), (1.0, 1e-6), (3.0, 0.1), (float("inf"), 1e-6)):
            yield m.case("pairwise_distance", lambda t, p, eps: F.pairwise_distance(t["x"], t["x2"], p, eps), ["x", "x2"], {"x": m.randn(*shape), "x2": m.randn(*shape)}, p=p, eps=eps)
    for lead, width, classes in (((4,), 3, 5), ((1,), 1, 2), ((2, 3), 5, 7), ((11,), 2, 3), ((2, 1, 3), 4, 1)):
        for reduction in REDUCTIONS:
            for smoothing, ignore in ((0.0, -100), (0.2, 0)):
                target = torch.randint(0, classes, lead, generator=m.g)
                target.view(-1)[0] = classes - 1  # one at least that counts, where there are more classes than the one that does not
                if classes == 1:
                    ignore = -100

                def run(t, reduction, label_smoothing, ignore_index):
                    logits = F.linear(t["x"], t["w"]).flatten(0, -2)
                    loss = F.cross_entropy(logits, t["target"].flatten(), reduction=reduction, label_smoothing=label_smoothing, ignore_index=ignore_index)
                    return loss.reshape(t["target"].shape) if reduction == "none" else loss

                yield m.case("linear_cross_entropy", run, ["x", "w"], {"x": m.randn(*lead, width), "w": m.randn(classes, width), "target": target},
                             reduction=reduction, label_smoothing=smoothing, ignore_index=ignore)


def nothing(g):
    """Layers of no samples, and of pictures without rows: results of no elements, and gradients of weights that are 0."""
    m = Maker(g)
    yield layer(m, nn.Conv1d(2, 4, 3), {"x": m.randn(0, 2, 5)}, out=4, kernel=3)
    for option in ({}, {"padding": 1, "padding_mode": "reflect"}):
        yield layer(m, nn.Conv2d(2, 4, 3, **option), {"x": m.randn(0, 2, 5, 4)}, out=4, kernel=3, **option)
    yield layer(m, nn.ConvTranspose1d(2, 4, 3), {"x": m.randn(0, 2, 5)}, out=4, kernel=3)
    yield layer(m, nn.ConvTranspose2d(2, 4, 3), {"x": m.randn(0, 2, 5, 4)}, out=4, kernel=3)
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        yield recurrent(m, g, kind, (3, 0, 2, 4), False, False, {})
        yield recurrent(m, g, kind, (3, 0, 2, 4), True, False, {"bidirectional": True, "num_layers": 2, "batch_first": True})
    for n, t, s in ((0, 3, 2), (2, 0, 3)):
        yield scores(m, {}, "", n, t, s, 2, 4, False)
        yield stack(m, {}, "", t, n, s, True, 1)
    yield stack(m, {"norm_first": True}, "", 3, 0, 3, False, 2)
    yield module(m, nn.GroupNorm(2, 4), {"x": m.randn(0, 4, 3)}, groups=2, eps=1e-5)
    # Not of pixel_shuffle: PyTorch 2.15 has no gradient of it there.
    for kind, f, shape, attrs in (("channel_shuffle", lambda x: F.channel_shuffle(x, 2), (0, 4, 3), dict(groups=2)), ("channel_shuffle", lambda x: F.channel_shuffle(x, 2), (3, 4, 0, 2), dict(groups=2)),
                                  ("adaptive_avg", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (0, 2, 5, 4), dict(size=[2, 3])), ("adaptive_max", lambda x: F.adaptive_max_pool2d(x, (2, 3)), (0, 2, 5, 4), dict(size=[2, 3])),
                                  ("unfold", lambda x: F.unfold(x, 2), (0, 2, 3, 4), dict(kernel=[2, 2])), ("fold", lambda x: F.fold(x, (3, 4), 2), (0, 8, 6), dict(size=[3, 4], kernel=[2, 2])),
                                  ("pad", lambda x: F.pad(x, (1, 2)), (0, 2, 3), dict(sides=[1, 2], mode="constant")), ("pad", lambda x: F.pad(x, (1, 2), mode="circular"), (0, 2, 3), dict(sides=[1, 2], mode="circular")),
                                  ("interpolate", lambda x: F.interpolate(x, 3), (0, 2, 4), dict(mode="nearest", size=3)),
                                  ("interpolate", lambda x: F.interpolate(x, 3, mode="bilinear"), (0, 2, 4, 5), dict(mode="bilinear", size=3)),
                                  ("interpolate", lambda x: F.interpolate(x, 3, mode="bicubic", antialias=True), (0, 2, 4, 5), dict(mode="bicubic", size=3, antialias=True))):
        yield call(m, kind, f, shape, **attrs)
    for kernel, padding, counted in ((2, 1, True), (3, 1, False)):
        attrs = dict(kernel=kernel, stride=2, padding=padding)
        yield module(m, nn.MaxPool2d(kernel, 2, padding), {"x": m.randn(0, 2, 5, 4)}, **attrs)
        yield module(m, nn.AvgPool2d(kernel, 2, padding, count_include_pad=counted), {"x": m.randn(0, 2, 5, 4)}, count_include_pad=counted, **attrs)

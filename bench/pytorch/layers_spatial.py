"""The cases of layers of sequences and pictures, for layers_reference.py: convolutions, padding, resampling, windows."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import golden
from layers_losses import Maker


def layer(m, make, inputs, forward=None, **attrs):
    """A case of a module with parameters drawn here."""
    make.double()
    params = {n: m.randn(*p.shape, scale=0.5) for n, p in make.named_parameters()}
    call = forward or (lambda mod, x: mod(x))

    class Call(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make

        def forward(self, x):
            return call(self.inner, x)

    outer = Call()
    run = lambda x, **p: torch.func.functional_call(outer, {f"inner.{n}": v for n, v in p.items()}, (x,))
    kind = "Conv2dPadded" if isinstance(make, nn.Conv2d) else type(make).__name__
    tensors = golden.record(run, inputs, params, ["x", *params], m.g, second=True)
    return f"{kind}_{next(m.count)}", kind, attrs, tensors


def convolutions(g):
    m = Maker(g)
    options = ({}, {"stride": 2}, {"padding": 2}, {"dilation": 2, "padding": 1}, {"groups": 2}, {"bias": False}, {"stride": 3, "padding": 1, "dilation": 2, "groups": 2},
               {"padding": "same"}, {"padding": "same", "dilation": 3}, *({"padding": 2, "padding_mode": p} for p in ("reflect", "replicate", "circular")),
               {"padding": "same", "padding_mode": "reflect"})
    for i, option in enumerate(options):
        n, t, kernel = ((2, 7, 3), (1, 9, 2), (3, 5, 1), (1, 8, 4), (2, 6, 2))[i % 5]
        for cls, shape in ((nn.Conv1d, (t,)), (nn.Conv2d, (t, t - 1))):
            if cls is nn.Conv2d and "padding_mode" not in option and option.get("padding") != "same":
                continue  # golden cases of nn_reference.py
            for lead in ((n,), ()) if cls is nn.Conv1d and i % 4 == 0 else ((n,),):
                attrs = {"out": 4, "kernel": kernel, **option}
                yield layer(m, cls(2, 4, kernel, **option), {"x": m.randn(*lead, 2, *shape)}, **attrs)
    options = ({}, {"stride": 2}, {"padding": 1}, {"stride": 3, "output_padding": 2}, {"dilation": 2}, {"dilation": 2, "output_padding": 1}, {"groups": 2}, {"bias": False},
               {"stride": 2, "padding": 1, "output_padding": 1, "dilation": 2, "groups": 2}, {"stride": 4, "padding": 2, "output_padding": 1, "bias": False})
    for i, option in enumerate(options):
        n, t, kernel = ((2, 4, 3), (1, 5, 2), (3, 3, 4), (1, 6, 1), (2, 1, 5))[i % 5]
        kernel = max(kernel, option.get("padding", 0) + 1)
        for cls, shape in ((nn.ConvTranspose1d, (t,)), (nn.ConvTranspose2d, (t, t + 1))):
            for lead in ((n,), ()) if i % 4 == 0 else ((n,),):
                yield layer(m, cls(2, 4, kernel, **option), {"x": m.randn(*lead, 2, *shape)}, out=4, kernel=kernel, **option)
    for size in ((9, 11), (10, 10)):
        yield layer(m, nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), {"x": m.randn(1, 2, 5, 6 if size[1] == 11 else 5)}, lambda mod, x: mod(x, output_size=size),
                    out=3, kernel=3, stride=2, padding=1, size=list(size))
        yield layer(m, nn.ConvTranspose1d(2, 3, 3, stride=3), {"x": m.randn(1, 2, 3)}, lambda mod, x: mod(x, output_size=(size[0],)), out=3, kernel=3, stride=3, size=[size[0]])


def call(m, kind, f, shape, x=None, second=True, **attrs):
    return m.case(kind, lambda t, **_: f(t["x"]), ["x"], {"x": m.randn(*shape) if x is None else x}, second, **attrs)


def interpolate(g):
    m = Maker(g)
    shapes = {1: ((2, 3, 5), (1, 1, 7), (3, 2, 1), (1, 2, 4), (2, 1, 3)),
              2: ((2, 3, 5, 4), (1, 1, 7, 3), (1, 2, 1, 6), (2, 1, 4, 4), (1, 2, 3, 8)),
              3: ((1, 2, 3, 4, 2), (2, 1, 2, 3, 3), (1, 1, 5, 1, 2), (1, 2, 2, 2, 2), (1, 1, 3, 2, 4))}
    sizes = {1: (dict(scale_factor=2.0), dict(scale_factor=3.0), dict(size=9), dict(size=2), dict(scale_factor=0.6), dict(scale_factor=1.7, recompute_scale_factor=True), dict(scale_factor=1.7), dict(size=1)),
             2: (dict(scale_factor=2.0), dict(scale_factor=(4.0, 1.5)), dict(size=(9, 7)), dict(size=(2, 3)), dict(scale_factor=1.3), dict(scale_factor=(1.3, 2.6), recompute_scale_factor=True),
                 dict(size=6), dict(scale_factor=(3.0, 1.0)), dict(size=1), dict(scale_factor=5.0)),
             3: (dict(scale_factor=2.0), dict(size=(4, 3, 5)), dict(size=2), dict(scale_factor=(1.5, 3.0, 1.0)), dict(scale_factor=1.4, recompute_scale_factor=True))}
    modes = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,), "area": (1, 2, 3)}
    for mode, ranks in modes.items():
        for rank in ranks:
            for i, size in enumerate(sizes[rank]):
                smooth = mode in ("linear", "bilinear", "trilinear", "bicubic")
                for corners in (False, True) if smooth else (None,):
                    for anti in (False, True) if mode in ("bilinear", "bicubic") else (False,):
                        shape = shapes[rank][(i + bool(corners) + 2 * anti) % len(shapes[rank])]
                        if anti and size.get("scale_factor") == 1.3:
                            continue  # a side that keeps its size is copied forward and resampled backward
                        attrs = {k: list(v) if isinstance(v, tuple) else v for k, v in size.items()}
                        try:
                            yield call(m, "interpolate", lambda x: F.interpolate(x, mode=mode, align_corners=corners, antialias=anti, **size), shape, second=i < 2, mode=mode, corners=bool(corners), antialias=anti, **attrs)
                        except RuntimeError as e:
                            if "should be greater than 0" not in str(e) and "non-zero" not in str(e):
                                raise


def windows(g):
    m = Maker(g)
    for mode in ("constant", "reflect", "replicate", "circular"):
        table = (((2, 3, 5), (1, 2)), ((3, 4, 5), (2, 0, 1, 3)), ((1, 2, 6, 4), (0, 3, 2, 1)), ((2, 5, 4, 3, 6), (1, 2, 2, 1, 3, 0)), ((2, 4), (3, 3)), ((1, 3, 7), (-2, 3)), ((2, 6, 5), (-1, -2)))
        if mode == "constant":
            table += (((4,), (1, 2)), ((2, 3, 4), (1, 0, 0, 2, 3, 1)), ((2, 3, 4), (1, 0, -1, 0, 3, -2)))
        for shape, sides in table:
            kw = {"value": 1.5} if mode == "constant" else {}
            yield call(m, "pad", lambda x: F.pad(x, sides, mode=mode, **kw), shape, sides=list(sides), mode=mode, **kw)
    for shape, r in (((1, 4, 2, 3), 2), ((2, 9, 1, 2), 3), ((8, 3, 1), 2), ((2, 2, 4, 2, 2), 2), ((3, 5, 2, 2), 1)):
        yield call(m, "pixel_shuffle", lambda x: F.pixel_shuffle(x, r), shape, by=r)
    for shape, r in (((1, 2, 4, 6), 2), ((2, 1, 3, 6), 3), ((3, 2, 4), 2), ((2, 2, 1, 4, 2), 2), ((3, 5, 2, 2), 1)):
        yield call(m, "pixel_unshuffle", lambda x: F.pixel_unshuffle(x, r), shape, by=r)
    for shape, n in (((1, 4, 2, 3), 2), ((2, 6, 1, 2), 3), ((2, 6, 3), 2), ((1, 8, 2, 1, 2), 4), ((3, 5, 2, 2), 1)):
        yield call(m, "channel_shuffle", lambda x: F.channel_shuffle(x, n), shape, groups=n)
    table = (((1, 2, 5, 6), (2, 3), 1, 0, 1), ((2, 3, 4, 4), (3, 3), 1, 1, 1), ((1, 1, 7, 5), (2, 2), (2, 3), (1, 0), 1), ((2, 2, 6, 7), (3, 2), 1, (0, 2), 2), ((2, 5, 4), (1, 3), 2, 1, (1, 2)), ((1, 2, 4, 6), (2, 2), 2, 0, 1))
    pair = lambda v: list(v) if isinstance(v, tuple) else [v, v]
    for shape, kernel, stride, padding, dilation in table:
        attrs = dict(kernel=pair(kernel), stride=pair(stride), padding=pair(padding), dilation=pair(dilation))
        kw = dict(kernel_size=kernel, stride=stride, padding=padding, dilation=dilation)
        yield call(m, "unfold", lambda x: F.unfold(x, **kw), shape, **attrs)
        columns = F.unfold(torch.zeros(shape), **kw).shape
        yield call(m, "fold", lambda x: F.fold(x, shape[-2:], **kw), columns, size=list(shape[-2:]), **attrs)
    table = (((2, 3, 7), 3), ((1, 2, 5), 5), ((3, 4, 6), 2), ((2, 3, 4), 6), ((3, 9), 4), ((1, 1, 5), 1))
    for shape, size in table:
        x = torch.randperm(torch.tensor(shape).prod(), generator=g).reshape(shape).double() / 4
        yield call(m, "adaptive_avg", lambda x: F.adaptive_avg_pool1d(x, size), shape, size=[size])
        yield call(m, "adaptive_max", lambda x: F.adaptive_max_pool1d(x, size), shape, x, size=[size])
    table = (((2, 3, 7, 5), (3, 2)), ((1, 2, 5, 4), (5, 3)), ((3, 1, 6, 6), (2, 3)), ((2, 1, 4, 3), (6, 5)), ((2, 9, 4), (4, 1)), ((1, 2, 8, 7), (4, 4)))
    for shape, size in table:
        x = torch.randperm(torch.tensor(shape).prod(), generator=g).reshape(shape).double() / 4
        yield call(m, "adaptive_avg", lambda x: F.adaptive_avg_pool2d(x, size), shape, size=list(size))
        yield call(m, "adaptive_max", lambda x: F.adaptive_max_pool2d(x, size), shape, x, size=list(size))
    for shape, size in (((2, 1, 5, 4, 3), (2, 3, 2)), ((1, 2, 3, 6, 4), (3, 4, 1))):
        yield call(m, "adaptive_avg", lambda x: F.adaptive_avg_pool3d(x, size), shape, size=list(size))

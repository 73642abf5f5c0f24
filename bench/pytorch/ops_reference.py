"""Small cases of op semantics that are easily got wrong, to check the float64 reference independently.

    python ops_reference.py [--dir internal/ref/testdata]

pytorch.json lists {name, op, attrs, in, out, grad, note}; pytorch.safetensors
holds CASE/in.x, CASE/out.y, CASE/up.y (upstream gradient) and CASE/grad.x, in the
dtype they were computed in: float64, unless the case is about a conversion or
integers. NaN and infinities are part of the answers, and so is the sign of 0
where the note says so.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F

import common
import golden

SEED = 3
G = torch.Generator().manual_seed(SEED)
INF, NAN = float("inf"), float("nan")
ZEROS = "the sign of 0 counts"


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


def ints(*values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


def randn(*shape):
    return golden.exact(torch.randn(shape, generator=G))


def case(name, op, fn, inputs, grad=None, note="", outputs=("y",), **attrs):
    tensors = golden.record(fn, inputs, grad=grad, generator=G, outputs=outputs)
    entry = {"name": name, "op": op, "attrs": attrs, "in": list(inputs), "out": list(outputs),
             "grad": list(grad or ()), "note": note}
    return entry, tensors


WIDE = f64(0.0, -0.0, 1e-300, -1e-8, 1e-8, 0.1, -0.5, 1.0, -1.0, 3.0, -3.0, 6.5, -6.5, 30.0, -30.0, 800.0, -800.0)


def elementwise():
    wide, edge = WIDE, torch.cat([WIDE, f64(INF, -INF, NAN)])
    for name, fn in (
        ("erf", torch.erf), ("tanh", torch.tanh), ("sigmoid", torch.sigmoid), ("silu", F.silu),
        ("exp", torch.exp), ("expm1", torch.expm1), ("sin", torch.sin), ("cos", torch.cos),
        ("gelu", F.gelu), ("relu", F.relu), ("abs", torch.abs),
    ):
        yield case(name, name, lambda x, fn=fn: fn(x), {"x": wide}, ["x"],
                   "the gradient at 0 is 0" if name in ("relu", "abs") else "")
        yield case(f"{name}_edge", name, lambda x, fn=fn: fn(x), {"x": edge})
    yield case("gelu_tanh", "gelu", lambda x: F.gelu(x, approximate="tanh"), {"x": wide}, ["x"], approximate="tanh")
    yield case("softplus", "softplus", lambda x: F.softplus(x), {"x": wide}, ["x"],
               "PyTorch returns x itself above 20", beta=1, threshold=20)
    yield case("log1p", "log1p", torch.log1p, {"input": f64(0, -0.0, 1e-300, 1e-17, -1e-9, 1e-9, 0.5, -0.5, 1e10, -1, -2, INF, NAN)},
               note=ZEROS)
    yield case("expm1_tiny", "expm1", torch.expm1, {"input": f64(0, -0.0, 1e-300, 1e-17, -1e-17, 1e-9, -1e-9, 709, -50)}, note=ZEROS)
    yield case("log", "log", torch.log, {"input": f64(0.0, -0.0, 1.0, 1e-310, -1.0, INF, NAN)})
    yield case("sqrt", "sqrt", torch.sqrt, {"input": f64(0.0, -0.0, 2.0, 1e-310, -1.0, INF, NAN)}, note=ZEROS)
    yield case("sqrt_grad", "sqrt", torch.sqrt, {"input": f64(0.0, 0.25, 2.0)}, ["input"], "an infinite gradient at 0")
    yield case("rsqrt", "rsqrt", torch.rsqrt, {"input": f64(0.0, -0.0, 4.0, 1e-310, -1.0, INF, NAN)}, note="1/√−0 = −∞")
    yield case("reciprocal", "reciprocal", torch.reciprocal, {"input": f64(0.0, -0.0, 4.0, -INF, NAN)}, note=ZEROS)
    yield case("div_zero", "div", lambda x, y: x / y, {"x": f64(1, -1, 0, INF, 1, -1), "y": f64(0, 0, 0, INF, -0.0, INF)}, note=ZEROS)
    special = f64(1.7, -1.7, 0.4, -0.4, 0.5, -0.5, 1.5, 2.5, -2.5, 0.0, -0.0, 4503599627370497.5, INF, -INF, NAN)
    for name in ("round", "floor", "ceil", "trunc", "sign"):
        yield case(name, name, getattr(torch, name), {"input": special},
                   note={"round": ZEROS + "; ties go to even", "sign": "+0 for −0 and for NaN"}.get(name, ZEROS))
    x, y = f64(5.5, -5.5, 5.5, -5.5, 6, -6, 0.0, -0.0, 1, -1, 3, INF), f64(2, 2, -2, -2, -3, 3, 5, 5, INF, INF, 0, 2)
    yield case("remainder", "remainder", torch.remainder, {"input": x, "other": y}, note="the divisor's sign")
    yield case("fmod", "fmod", torch.fmod, {"input": x, "other": y}, note="the dividend's sign")
    base = f64(-2, -2, -2, -8, 0, 0, -0.0, -0.0, 0, 1, NAN, -1, 2, 2, -INF, 0.5)
    power = f64(3, 2, -3, 1 / 3, 0, -1, -1, 3, 2, NAN, 0, INF, INF, -INF, 3, 1100)
    yield case("pow", "pow", torch.pow, {"input": base, "exponent": power}, note=ZEROS)
    yield case("pow_grad", "pow", torch.pow, {"input": f64(2, 0.5, 3, 0, 0), "exponent": f64(3, -1.5, 0, 2, 1)}, ["input", "exponent"],
               "the exponent's gradient is 0 where the base is 0 and the exponent is not negative")
    yield case("pow_grad_negative_base", "pow", lambda x: x ** 3, {"x": f64(-2, -0.5, 0)}, ["x"], exponent=3)
    a, b = f64(1, NAN, 3, 0.0, -0.0, INF, 2), f64(2, 1, NAN, -0.0, 0.0, -INF, 2)
    for name in ("maximum", "minimum"):
        yield case(name, name, getattr(torch, name), {"input": a, "other": b}, note="NaN on either side wins")
        yield case(f"{name}_ties", name, getattr(torch, name), {"input": f64(1, 2, 3), "other": f64(1, 3, 2)}, ["input", "other"],
                   "equal operands get half the gradient each")
    yield case("clamp", "clamp", lambda x: x.clamp(-1, 2), {"x": f64(-3, -1, 0, 2, 5)}, ["x"],
               "PyTorch 2.15 gives 0 at the bounds, as hardtanh; releases before mid-2026 gave 1", min=-1, max=2)
    yield case("clamp_edge", "clamp", lambda x: x.clamp(-1, 2), {"x": f64(NAN, INF, -INF, -0.0)}, min=-1, max=2)
    yield case("lerp", "lerp", lambda x, y: torch.lerp(x, y, 0.3), {"x": randn(4), "y": randn(4)}, ["x", "y"], weight=0.3)
    condition = torch.tensor([True, False, True, False])
    yield case("where", "where", lambda condition, x, y: torch.where(condition, x, y),
               {"condition": condition, "x": f64(1, NAN, 3, INF), "y": f64(NAN, 2, INF, 4)}, ["x", "y"],
               "the branch not taken gets 0, whatever it holds")
    yield case("where_log", "where", lambda x: torch.where(x > 0, x, torch.zeros_like(x)).log().clamp(min=-5), {"x": f64(2, 3, 0.5)}, ["x"])
    yield case("where_broadcast", "where", lambda condition, x, y: torch.where(condition, x, y),
               {"condition": torch.tensor([[True], [False]]), "x": randn(3), "y": randn(2, 1)}, ["x", "y"])
    yield case("broadcast", "mul", lambda x, y, z: x * y + z, {"x": randn(3, 1), "y": randn(2, 1, 4), "z": randn()}, ["x", "y", "z"])


def comparisons():
    a, b = f64(1, NAN, NAN, 0.0, INF, 2), f64(1, 1, NAN, -0.0, INF, 3)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield case(name, name, getattr(torch, name), {"input": a, "other": b}, note="bool out; NaN equals nothing, 0 = −0")
    p, q = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield case(name, name, getattr(torch, name), {"input": p, "other": q})
    yield case("logical_not", "logical_not", torch.logical_not, {"input": p})
    yield case("bool_sum", "sum", lambda x: x.sum(), {"x": p}, note="bool sums to int64")


def integers():
    x, y = ints(7, -7, 7, -7, 6, -6, 0), ints(2, 2, -2, -2, 3, 3, 5)
    for mode in ("trunc", "floor"):
        yield case(f"int_div_{mode}", "div", lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode), {"x": x, "y": y}, mode=mode)
    yield case("int_remainder", "remainder", torch.remainder, {"input": x, "other": y}, note="the divisor's sign")
    yield case("int_true_div", "div", lambda x, y: x / y, {"x": x, "y": y}, note="float32 out")
    yield case("u8_wrap", "add", lambda x, y: x + y, {"x": ints(250, 255, 3, dtype=torch.uint8), "y": ints(10, 1, 4, dtype=torch.uint8)},
               note="modulo 256")
    yield case("i32_wrap", "mul", lambda x, y: x * y,
               {"x": ints(2**30, -2**31, 65536, dtype=torch.int32), "y": ints(4, -1, 65537, dtype=torch.int32)}, note="two's complement")
    yield case("i64_wrap", "add", lambda x, y: x + y, {"x": ints(2**63 - 1, -2**63), "y": ints(1, -1)}, note="two's complement")
    yield case("i32_sum", "sum", lambda x: x.sum(), {"x": ints(2**31 - 1, 2**31 - 1, dtype=torch.int32)}, note="int32 sums to int64")


def both(f):
    return lambda x, y: f(x, y)


def kin():
    for name, fn in (("erfc", torch.erfc), ("sinc", torch.sinc)):
        yield case(name, name, lambda x, f=fn: f(x), {"x": WIDE[WIDE.abs() < 100]}, ["x"] if name == "erfc" else None)
        yield case(f"{name}_edge", name, lambda x, f=fn: f(x), {"x": f64(INF, -INF, NAN) if name == "erfc" else f64(NAN, 0.0, 1.5)})
    some = f64(0.0, -0.0, 1e-300, 0.5, -2.0, 1e200, INF, -INF, NAN)
    pairs = {"x": some.repeat_interleave(len(some)), "y": some.repeat(len(some))}
    for name in ("logaddexp", "logaddexp2", "hypot", "copysign"):
        yield case(name, name, both(getattr(torch, name)), pairs, note=ZEROS if name == "copysign" else "")
        yield case(f"{name}_grad", name, both(getattr(torch, name)), {"x": f64(0.5, -3, 2, 40), "y": f64(1.5, 2, 2.5, -7)}, ["x", "y"])
    for name, fn in (("xlogy", torch.xlogy), ("xlog1py", torch.special.xlog1py)):
        yield case(name, name, both(fn), pairs)
        yield case(f"{name}_grad", name, both(fn), {"x": f64(0, 0, 2, -1), "y": f64(0, 3, 0.5, 7)}, ["x", "y"], "the first has slope 0 at 0 and 0")


def bits():
    ends = {torch.int64: (2**63 - 1, -2**63), torch.int32: (2**31 - 1, -2**31), torch.uint8: (255, 128)}
    for dtype, (high, low) in ends.items():
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "gcd"):
            last = -high if name == "gcd" and low < 0 else low  # of the least integer PyTorch's divisors are negative
            some = ints(0, 1, 6, 5 if low > 0 else -5, high, last, dtype=dtype)
            pairs = {"x": some.repeat_interleave(len(some)), "y": some.repeat(len(some))}
            yield case(f"{name}_{golden_name(dtype)}", name, both(getattr(torch, name)), pairs, note="each pair of ends")


def golden_name(dtype):
    return str(dtype).removeprefix("torch.")


def conversions():
    fractions = f64(2.7, -2.7, 0.5, -0.5, 0.0, -0.0, 1e6, -1.0)
    for name, dtype in (("i64", torch.int64), ("i32", torch.int32)):
        yield case(f"f64_to_{name}", "cast", lambda x, d=dtype: x.to(d), {"x": fractions}, note="toward 0", to=name)
    yield case("f64_to_bool", "cast", lambda x: x.bool(), {"x": f64(0, -0.0, 0.1, NAN, -INF, 1e-310)}, note="NaN is true, −0 false", to="bool")
    yield case("i64_to_u8", "cast", lambda x: x.to(torch.uint8), {"x": ints(0, 255, 256, 300, -1)}, note="modulo 256", to="u8")
    yield case("i64_to_i32", "cast", lambda x: x.to(torch.int32), {"x": ints(2**31, -2**31 - 1, 2**32 + 5)}, note="modulo 2³²", to="i32")
    yield case("i64_to_f32", "cast", lambda x: x.float(), {"x": ints(16777217, 16777219, 2**53 + 1, -2**63, 2**63 - 1)},
               note="to nearest, ties to even", to="f32")
    yield case("i64_to_f64", "cast", lambda x: x.double(), {"x": ints(2**53 + 1, 2**53 + 3, 2**63 - 1)}, to="f64")
    yield case("bool_to_f32", "cast", lambda x: x.float(), {"x": torch.tensor([True, False])}, to="f32")
    yield case("f64_to_f32", "cast", lambda x: x.float(),
               {"x": f64(0.1, 1 + 2**-24, 1 + 3 * 2**-24, 3.4028235677973366e38, 3.4028235e38, 1e-45, 7e-46, 1e-46, -0.0, NAN, -INF)}, to="f32")
    x = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.3961775e38, 3.39e38, 1e-40, 9e-41, 4e-41, -0.0, NAN, INF], dtype=torch.float32)
    yield case("f32_to_bf16", "cast", lambda x: x.bfloat16(), {"x": x}, note="to nearest, ties to even; overflow to ∞", to="bf16")
    x = torch.tensor([1 + 2**-11, 1 + 3 * 2**-11, 65504, 65519.996, 65520, 2**-24, 2**-25, 2**-25 * 1.0001, 3 * 2**-25, -0.0, NAN, -INF],
                     dtype=torch.float32)
    yield case("f32_to_f16", "cast", lambda x: x.half(), {"x": x}, note="to nearest, ties to even; subnormals kept; 65520 overflows", to="f16")


def reductions():
    one, empty = f64(3.0).view(1, 1), torch.zeros(2, 0, dtype=torch.float64)
    yield case("mean_one", "mean", lambda x: x.mean(1), {"x": one}, dim=1)
    yield case("var_one", "var", lambda x: x.var(1), {"x": one}, note="NaN: divided by n − 1 = 0", dim=1, correction=1)
    yield case("var_one_biased", "var", lambda x: x.var(1, correction=0), {"x": one}, dim=1, correction=0)
    yield case("var", "var", lambda x: x.var(1), {"x": 1e6 + randn(3, 5)}, ["x"], dim=1, correction=1)
    yield case("sum_empty", "sum", lambda x: x.sum(1), {"x": empty}, dim=1)
    yield case("mean_empty", "mean", lambda x: x.mean(1), {"x": empty}, note="NaN", dim=1)
    yield case("prod_empty", "prod", lambda x: x.prod(1), {"x": empty}, dim=1)
    yield case("all_empty", "all", lambda x: x.bool().all(1), {"x": empty}, note="true", dim=1)
    yield case("any_empty", "any", lambda x: x.bool().any(1), {"x": empty}, note="false", dim=1)
    yield case("prod_zero", "prod", lambda x: x.prod(1), {"x": torch.tensor([[2, 0, 3], [0, 5, 0], [2, 3, 4]]).double()}, ["x"], dim=1)
    yield case("sum_several", "sum", lambda x: x.sum((0, 2)), {"x": randn(2, 3, 4)}, ["x"], dim=[0, 2])
    ties = torch.tensor([[1, 3, 3, 2], [NAN, 1, NAN, 9], [0.0, -0.0, -1, -1], [-INF] * 4], dtype=torch.float64)
    for name in ("argmax", "argmin"):
        yield case(name, name, lambda x, n=name: getattr(x, n)(1), {"x": ties},
                   note="the first among equals; the first NaN wins", dim=1)
    for name in ("amax", "amin"):
        yield case(name, name, lambda x, n=name: getattr(x, n)(1), {"x": ties}, note="NaN wins", dim=1)
        yield case(f"{name}_ties", name, lambda x, n=name: getattr(x, n)(1), {"x": f64(1, 3, 3, 1).view(1, 4)}, ["x"],
                   "amax and amin share the gradient among equals", dim=1)
    yield case("max_index", "max", lambda x: x.max(1).values, {"x": f64(1, 3, 3, 2).view(1, 4)}, ["x"],
               "max over a dimension gives the gradient to the index it returns", dim=1)
    x = randn(2, 3, 4)
    for dim in range(3):
        yield case(f"cumsum_{dim}", "cumsum", lambda x, d=dim: x.cumsum(d), {"x": x}, ["x"], dim=dim)
    rows = torch.tensor([[1, -INF, 2], [-INF] * 3, [INF, 1, 2], [NAN, 1, 2], [1000, 1000, -1000]], dtype=torch.float64)
    yield case("logsumexp", "logsumexp", lambda x: x.logsumexp(1), {"x": rows}, note="of only −∞ it is −∞", dim=1)
    yield case("logsumexp_grad", "logsumexp", lambda x: x.logsumexp(1), {"x": rows[[0, 4]]}, ["x"], dim=1)
    for name in ("softmax", "log_softmax"):
        yield case(name, name, lambda x, n=name: getattr(F, n)(x, 1), {"x": rows}, note="NaN in a row of only −∞", dim=1)
        yield case(f"{name}_grad", name, lambda x, n=name: getattr(F, n)(x, 1), {"x": torch.cat([rows[[4]], randn(2, 3)])}, ["x"], dim=1)
    yield case("softmax_grad_masked", "softmax", lambda x: F.softmax(x, 1), {"x": rows[[0]]}, ["x"], "0, not NaN, where −∞ stood", dim=1)


def indexing():
    index = ints(0, 2, 2, 1).view(2, 2)
    yield case("gather", "gather", lambda x, index: x.gather(1, index), {"x": randn(2, 3), "index": index}, ["x"], dim=1)
    repeated = torch.tensor([[0, 0, 0], [1, 1, 0]])
    yield case("gather_duplicates", "gather", lambda x, index: x.gather(1, index), {"x": randn(2, 2), "index": repeated}, ["x"], dim=1)
    yield case("gather_smaller", "gather", lambda x, index: x.gather(0, index), {"x": randn(4, 3), "index": ints(3, 1).view(1, 2)}, ["x"],
               "index smaller than x in the other dimension", dim=0)
    yield case("scatter_add", "scatter_add", lambda x, index, src: x.scatter_add(1, index, src),
               {"x": randn(2, 4), "index": repeated, "src": randn(2, 3)}, ["x", "src"], dim=1)
    yield case("scatter", "scatter", lambda x, index, src: x.scatter(1, index, src),
               {"x": randn(2, 4), "index": torch.tensor([[3, 0], [1, 2]]), "src": randn(2, 2)}, ["x", "src"], dim=1)
    yield case("index_select", "index_select", lambda x, index: x.index_select(0, index), {"x": randn(3, 2), "index": ints(2, 0, 2)}, ["x"], dim=0)
    yield case("embedding", "embedding", lambda weight, index: F.embedding(index, weight),
               {"weight": randn(4, 3), "index": torch.tensor([[1, 1], [3, 1]])}, ["weight"], "duplicates add up")
    yield case("slice_step", "slice", lambda x: x[:, 1:6:2], {"x": randn(2, 7)}, ["x"], start=1, stop=6, step=2, dim=1)
    yield case("cat", "cat", lambda x, y, z: torch.cat([x, y, z], 1), {"x": randn(2, 1), "y": randn(2, 0), "z": randn(2, 3)}, ["x", "y", "z"], dim=1)
    yield case("stack", "stack", lambda x, y: torch.stack([x, y], 1), {"x": randn(2, 3), "y": randn(2, 3)}, ["x", "y"], dim=1)
    yield case("expand", "expand", lambda x: x.expand(2, 3, 4), {"x": randn(3, 1)}, ["x"], shape=[2, 3, 4])
    yield case("pad", "pad", lambda x: F.pad(x, (1, 2, 0, 1), value=7.0), {"x": randn(2, 3)}, ["x"], "pairs from the last dimension", pad=[1, 2, 0, 1], value=7.0)
    yield case("pad_negative", "pad", lambda x: F.pad(x, (-1, 2)), {"x": randn(2, 3)}, ["x"], pad=[-1, 2], value=0.0)
    yield case("flip", "flip", lambda x: x.flip(1), {"x": randn(2, 3)}, ["x"], dim=1)
    yield case("tril", "tril", lambda x: x.tril(-1), {"x": randn(3, 4)}, ["x"], diagonal=-1)
    yield case("permute", "permute", lambda x: x.permute(2, 0, 1), {"x": randn(2, 3, 4)}, ["x"], dims=[2, 0, 1])


def products():
    for name, a, b in (
        ("matmul", (3, 4), (4, 2)), ("matmul_batch", (2, 3, 4), (2, 4, 2)), ("matmul_broadcast", (2, 1, 3, 4), (5, 4, 2)),
        ("matmul_vector_right", (3, 4), (4,)), ("matmul_vector_left", (4,), (2, 4, 3)), ("matmul_dot", (4,), (4,)),
    ):
        yield case(name, "matmul", lambda x, y: x @ y, {"x": randn(*a), "y": randn(*b)}, ["x", "y"])
    yield case("matmul_empty", "matmul", lambda x, y: x @ y, {"x": randn(2, 0), "y": randn(0, 3)}, note="zeros")
    for name, shapes, attrs in (
        ("conv2d_padding", ((1, 2, 4, 5), (3, 2, 3, 3)), dict(padding=1)),
        ("conv2d_stride", ((2, 2, 6, 7), (2, 2, 3, 2)), dict(stride=2)),
        ("conv2d_dilation", ((1, 1, 7, 6), (2, 1, 2, 3)), dict(dilation=2, padding=1)),
        ("conv2d_groups", ((1, 4, 4, 4), (6, 2, 3, 3)), dict(groups=2, padding=1)),
        ("conv2d_all", ((2, 4, 9, 8), (4, 2, 3, 2)), dict(stride=(2, 3), padding=(2, 1), dilation=(1, 2), groups=2)),
        ("conv2d_unreached", ((1, 1, 6, 6), (1, 1, 1, 1)), dict(stride=4)),
    ):
        inputs = {"x": randn(*shapes[0]), "weight": randn(*shapes[1]), "bias": randn(shapes[1][0])}
        yield case(name, "conv2d", lambda x, weight, bias, a=attrs: F.conv2d(x, weight, bias, **a), inputs, ["x", "weight", "bias"], **attrs)


def pooling():
    tied = torch.tensor([[1, 1, 2, 2], [1, 1, 2, 2], [5, 0, NAN, 3], [0, 5, 4, NAN]], dtype=torch.float64).view(1, 1, 4, 4)
    yield case("maxpool2d_ties_nan", "max_pool2d", lambda x: F.max_pool2d(x, 2, return_indices=True), {"x": tied}, ["x"],
               "the first among equals gets the gradient; of several NaN the last; index counts within the plane",
               outputs=("y", "index"), kernel=2, stride=2, padding=0)
    low = -torch.arange(9, dtype=torch.float64).view(1, 1, 3, 3) - 1
    yield case("maxpool2d_negative_padding", "max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), {"x": low}, ["x"],
               "padding is −∞, not 0; windows overlap, gradients add up", outputs=("y", "index"), kernel=3, stride=2, padding=1)
    yield case("maxpool2d_minus_inf", "max_pool2d", lambda x: F.max_pool2d(x, 2, return_indices=True),
               {"x": torch.full((1, 1, 2, 2), -INF, dtype=torch.float64)}, ["x"], "an index all the same",
               outputs=("y", "index"), kernel=2, stride=2, padding=0)
    for include in (True, False):
        yield case(f"avgpool2d_{'include' if include else 'exclude'}", "avg_pool2d",
                   lambda x, i=include: F.avg_pool2d(x, 3, 2, 1, count_include_pad=i), {"x": randn(1, 1, 5, 4)}, ["x"],
                   kernel=3, stride=2, padding=1, count_include_pad=include)
    constant = torch.full((2, 4), 7.0, dtype=torch.float64)
    yield case("layer_norm_constant", "layer_norm", lambda x, weight, bias: F.layer_norm(x, (4,), weight, bias),
               {"x": constant, "weight": randn(4), "bias": randn(4)}, ["x", "weight", "bias"], "variance 0", eps=1e-5)
    yield case("rms_norm_zero", "rms_norm", lambda x, weight: F.rms_norm(x, (4,), weight, 1e-6),
               {"x": torch.zeros(2, 4, dtype=torch.float64), "weight": randn(4)}, ["x", "weight"], "mean square 0", eps=1e-6)
    logits = torch.tensor([[1000, -1000, 0], [0, 0, 0], [-1000, -1001, -999]], dtype=torch.float64)
    yield case("cross_entropy_large", "cross_entropy", lambda x, target: F.cross_entropy(x, target, reduction="none"),
               {"x": logits, "target": ints(1, 2, 0)}, ["x"], reduction="none")
    yield case("cross_entropy_all_ignored", "cross_entropy", lambda x, target: F.cross_entropy(x, target),
               {"x": logits, "target": ints(-100, -100, -100)}, note="NaN: the mean of nothing", ignore_index=-100, reduction="mean")
    yield case("bce_logits_large", "binary_cross_entropy_with_logits",
               lambda x, target: F.binary_cross_entropy_with_logits(x, target, reduction="none"),
               {"x": f64(1000, -1000, 1000, -1000, 0), "target": f64(1, 0, 0, 1, 0.5)}, ["x"], reduction="none")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "internal/ref/testdata")
    directory = parser.parse_args().dir
    common.deterministic(SEED)
    index, tensors = [], {}
    for group in (elementwise, comparisons, integers, conversions, reductions, indexing, products, pooling, bits, kin):
        for entry, results in group():
            if entry["name"] in {e["name"] for e in index}:
                raise SystemExit(f"two cases are named {entry['name']}")
            index.append(entry)
            tensors.update({f"{entry['name']}/{n}": t for n, t in results.items()})
    common.save_tensors(directory / "pytorch.safetensors", tensors)
    common.save_json(directory / "pytorch.json", {"versions": common.versions(), "cases": index})
    print(f"{len(index)} cases in {directory}")


if __name__ == "__main__":
    main()

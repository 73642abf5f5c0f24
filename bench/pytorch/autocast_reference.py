"""The dtype of each operation's result under PyTorch's autocast, by its CUDA and its CPU lists.

    python autocast_reference.py [--file tensor/testdata/autocast.txt]

A line is an operation and eight letters: for CUDA, then for the CPU, the dtype of
the result where the operands are all float32, all of the 16-bit dtype, the first
float32 and the others 16 bits, and the other way round. w is float32, l the
16-bit dtype, i an integer or bool, x an error, . that there is one operand only.
float16 and bfloat16 must agree, or the script fails. CUDA's need no card: fake
tensors, with autocast for cuda switched on by hand.
"""

import argparse
import logging
import pathlib
import warnings

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

import common

TORCH_UNARY = "tan asin acos atan sinh cosh asinh acosh atanh exp2 log2 log10 erfc sinc erfinv lgamma digamma exp expm1 log log1p rsqrt sqrt sin cos tanh sigmoid erf relu neg abs sign floor ceil round trunc square".split()

ONE = {name: getattr(torch, name) for name in TORCH_UNARY}
ONE |= {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "softsign": F.softsign, "mish": F.mish,
    "affine": lambda x: x * 2 + 1, "pow_scalar": lambda x: x**3, "clamp": lambda x: x.clamp(0, 1), "dropout": lambda x: F.dropout(x, 0.5),
    "sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1), "prod": lambda x: x.prod(1), "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(1),
    "argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin(1), "cumsum": lambda x: x.cumsum(1), "var": lambda x: x.var(1),
    "norm": lambda x: x.norm(), "logsumexp": lambda x: x.logsumexp(1), "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1),
    "reshape": lambda x: x.reshape(-1), "permute": lambda x: x.permute(1, 0), "slice": lambda x: x[1:], "expand": lambda x: x.expand(2, 4, 4),
    "contiguous": lambda x: x.t().contiguous(), "pad": lambda x: F.pad(x, (1, 1)), "gather": lambda x: x.gather(1, zeros(x)),
    "index_select": lambda x: x.index_select(0, zeros(x)[0]), "embedding": lambda x: F.embedding(zeros(x), x),
    "max_pool2d": lambda x: F.max_pool2d(image(x), 2), "avg_pool2d": lambda x: F.avg_pool2d(image(x), 2),
    "interpolate": lambda x: F.interpolate(image(x), scale_factor=2, mode="bilinear"),
    "cross_entropy": lambda x: F.cross_entropy(x, zeros(x)[0]), "trigamma": lambda x: torch.polygamma(1, x), "sort": lambda x: x.sort(1)[0],
    "self_attention": lambda x: F.scaled_dot_product_attention(image(x), image(x), image(x)),
}
TWO = {
    **{n: getattr(torch, n) for n in ("xlogy", "logaddexp", "logaddexp2", "hypot", "fmod", "copysign", "ldexp", "fmax", "fmin")},
    "xlog1py": torch.special.xlog1py, "scatter": lambda x, y: x.scatter(1, zeros(x), y), "index_add": lambda x, y: x.index_add(0, zeros(x)[0], y),
    "index_copy": lambda x, y: x.index_copy(0, zeros(x)[0], y), "index_put": lambda x, y: x.index_put((zeros(x)[0],), y),
    "masked_scatter": lambda x, y: x.masked_scatter(zeros(x) == 0, y),
    "scatter_reduce": lambda x, y: x.scatter_reduce(1, zeros(x), y, "amax"),
    "atan2": torch.atan2, "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow, "remainder": torch.remainder,
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"), "maximum": torch.maximum, "minimum": torch.minimum,
    "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "where": lambda x, y: torch.where(zeros(x) == 0, x, y),
    "cat": lambda x, y: torch.cat([x, y]), "stack": lambda x, y: torch.stack([x, y]), "scatter_add": lambda x, y: x.scatter_add(1, zeros(x), y),
    "matmul": torch.matmul, "linear": lambda x, y: F.linear(x, y), "linear_bias": lambda x, y: F.linear(x, y, y[0]),
    "linear_gelu": lambda x, y: F.gelu(F.linear(x, y, y[0])), "conv2d": lambda x, y: F.conv2d(image(x), image(y)),
    "conv_transpose2d": lambda x, y: F.conv_transpose2d(image(x), image(y)),
    "attention": lambda x, y: F.scaled_dot_product_attention(image(x), image(y), image(y)),
    "layer_norm": lambda x, y: F.layer_norm(x, (4,), y[0], y[1]),
    "rms_norm": lambda x, y: F.rms_norm(x, (4,), y[0]), "batch_norm": lambda x, y: F.batch_norm(x, None, None, y[0], y[1], training=True),
    "batch_norm_eval": lambda x, y: F.batch_norm(x, y[0], y[1], y[2], y[3]), "linear_cross_entropy": lambda x, y: F.cross_entropy(F.linear(x, y), zeros(x)[0]),
    "mse_loss": F.mse_loss, "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits,
}


def zeros(like):
    return torch.zeros(like.shape, dtype=torch.int64, device=like.device)


def image(x):
    return x.reshape(1, 1, 4, 4)


def letter(fn, device, low, dtypes):
    inputs = [torch.ones(4, 4, device=device, dtype=low if d == "l" else torch.float32) for d in dtypes]
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, low)
    try:
        out = fn(*inputs).dtype
    except (RuntimeError, ValueError):
        return "x"
    finally:
        torch.set_autocast_enabled(device, False)
        torch.clear_autocast_cache()
    return "w" if out == torch.float32 else "l" if out == low else "i" if not out.is_floating_point else "?"


def row(fn, device, operands):
    out = ""
    for dtypes in ("ww", "ll", "wl", "lw"):
        both = {letter(fn, device, low, dtypes[:operands]) for low in (torch.float16, torch.bfloat16)} if operands == 2 or dtypes in ("ww", "ll") else {"."}
        assert len(both) == 1, "float16 and bfloat16 differ"
        out += both.pop()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=pathlib.Path, default=common.ROOT / "tensor/testdata/autocast.txt")
    file = parser.parse_args().file
    logging.disable(logging.ERROR)  # errors are part of the answers
    warnings.simplefilter("ignore")
    lines = []
    for table, operands in ((ONE, 1), (TWO, 2)):
        for name, fn in table.items():
            with FakeTensorMode():
                cuda = row(fn, "cuda", operands)
                lines.append(f"{name} {cuda} {row(fn, 'cpu', operands)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# bench/pytorch/autocast_reference.py, torch {torch.__version__}\n" + "\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} operations in {file}")


if __name__ == "__main__":
    main()

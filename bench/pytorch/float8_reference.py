"""Writes dtype/testdata/float8.txt: PyTorch's values of all bit patterns of its 8-bit floating-point types, and what it
makes of float32 numbers: the midpoints between two values, their neighbours, and random ones."""

import random
import struct
import sys

import torch

types = {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
random.seed(1)


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


out = [f"# PyTorch {torch.__version__.split('+')[0]}: value <type> <bits> <float32 bits>, narrow <type> <float32 bits> <bits>; a NaN is nan."]
for name, dt in types.items():
    values = torch.arange(256, dtype=torch.uint8).view(dt).to(torch.float32)
    for i, v in enumerate(values.tolist()):
        out.append(f"value {name} {i:02x} " + ("nan" if v != v else f"{bits(v):08x}"))
    finite = sorted({v for v in values.tolist() if abs(v) < float("inf")})
    inputs = [float("inf"), float("-inf"), float("nan"), 3e38, -3e38, 1e-45, -0.0]
    inputs += [finite[-1] * k for k in (1.03125, 1.0357, 1.0715, 1.125, 1.13, 2)]
    for a, b in zip(finite, finite[1:]):
        inputs.append((a + b) / 2)
    inputs += [random.gauss(0, 1) * 2 ** random.randint(-20, 16) for _ in range(40)]
    t = torch.tensor(inputs, dtype=torch.float32)
    up, down = torch.nextafter(t, torch.tensor(float("inf"))), torch.nextafter(t, torch.tensor(float("-inf")))
    for x in torch.cat([t, up, down]):
        y = x.to(dt)
        code = "nan" if y.to(torch.float32) != y.to(torch.float32) else f"{y.view(torch.uint8).item():02x}"
        out.append(f"narrow {name} {bits(x.item()):08x} {code}")

with open(sys.argv[1] if len(sys.argv) > 1 else "dtype/testdata/float8.txt", "w") as f:
    f.write("\n".join(out) + "\n")

"""Writes the golden files of internal/safetensors with the reference library.

    pip install safetensors==0.8.0 && python make.py

all.safetensors: one tensor of every dtype, added in an order that is neither
the file's nor alphabetical, with metadata, an empty tensor and a scalar.
Byte i of tensor number k is (7*k + i) mod 251, so that the Go test can state
the content without a second reader.
"""

import ctypes
import os

import safetensors

HERE = os.path.dirname(os.path.abspath(__file__))

TENSORS = [
    ("z.f32", "float32", [2, 3], 4),
    ("a.u8", "uint8", [5], 1),
    ("m.bf16", "bfloat16", [3], 2),
    ("b.i64", "int64", [2], 8),
    ("c.f16", "float16", [1, 3], 2),
    ("d.f64", "float64", [1], 8),
    ("e.bool", "bool", [3], 1),
    ("f.i32", "int32", [2], 4),
    ("g.i16", "int16", [2], 2),
    ("h.i8", "int8", [2], 1),
    ("i.u16", "uint16", [2], 2),
    ("j.u32", "uint32", [2], 4),
    ("k.u64", "uint64", [1], 8),
    ("l.f8e4", "float8_e4m3fn", [2], 1),
    ("n.f8e5", "float8_e5m2", [2], 1),
    ("y.f32", "float32", [], 4),
    ("x.f32", "float32", [0, 4], 4),
    ('quo"té\n', "float32", [1], 4),
]


def payload(k, shape, size):
    n = size
    for d in shape:
        n *= d
    return bytes((7 * k + i) % 251 for i in range(n))


def main():
    tensors, alive = {}, []
    for k, (name, dtype, shape, size) in enumerate(TENSORS):
        data = payload(k, shape, size)
        alive.append(ctypes.create_string_buffer(data, max(len(data), 1)))
        tensors[name] = safetensors.TensorSpec(
            dtype=dtype,
            shape=shape,
            data_ptr=ctypes.addressof(alive[-1]),
            data_len=len(data),
        )
    out = {"all": (tensors, {"format": "pt"}), "none": ({}, None)}
    for name, (t, meta) in out.items():
        with open(os.path.join(HERE, name + ".safetensors"), "wb") as f:
            f.write(safetensors.serialize(t, meta))


main()

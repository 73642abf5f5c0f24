"""Writes the golden files of internal/npy with NumPy.

    pip install numpy==2.4.6 && python make.py

Element i (in C order) of every array is (i*37) % 101 - 20, cast to the dtype
(clipped at 0 for unsigned, odd/even for bool).
"""

import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def values(dtype, shape):
    n = int(np.prod(shape))
    v = (np.arange(n) * 37) % 101 - 20
    dtype = np.dtype(dtype)
    if dtype.kind == "u":
        v = np.maximum(v, 0)
    if dtype.kind == "b":
        v = v % 2
    return v.astype(dtype).reshape(shape)


def save(name, a, version=None):
    with open(os.path.join(HERE, name + ".npy"), "wb") as f:
        np.lib.format.write_array(f, a, version=version)


def main():
    for d in ["f8", "f4", "f2", "i8", "i4", "i2", "u8", "u4", "u2", "i1", "u1", "b1"]:
        save("le-" + d, values("<" + d, (3, 5)))
    for d in ["f8", "f4", "f2", "i4", "u2"]:
        save("be-" + d, values(">" + d, (3, 5)))
    save("fortran", np.asfortranarray(values("<f4", (2, 3, 4))))
    save("fortran-be", np.asfortranarray(values(">i4", (2, 3, 4))))
    save("scalar", values("<f4", ()))
    save("empty", values("<f4", (0, 7)))
    save("vector", values("<i8", (7,)))
    save("v2", values("<f4", (3, 5)), (2, 0))
    save("v3", values("<f4", (3, 5)), (3, 0))
    members = {"images": values("|u1", (2, 1, 3, 3)), "labels": values("<i8", (2,))}
    np.savez(os.path.join(HERE, "stored.npz"), **members)
    np.savez_compressed(os.path.join(HERE, "deflated.npz"), **members)
    np.save(os.path.join(HERE, "object.npy"), np.array([{"a": 1}], dtype=object), allow_pickle=True)
    save("struct", np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4")]))
    save("complex", np.zeros(2, dtype="<c8"))


main()

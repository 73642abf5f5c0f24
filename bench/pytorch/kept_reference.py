"""The bytes that PyTorch keeps of each operation for its gradient, in the storages of saved tensors but for the operands' own.

    python kept_reference.py [--file tensor/testdata/kept.txt]

The operations are those of autocast_reference.py, on float32 operands of 4 × 4 that want gradients, as they are on a card:
fake tensors need none. A line is an operation and bytes; a storage that several saved tensors share counts once.
"""

import argparse
import logging
import pathlib
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import autocast_reference
import common


def kept(fn, operands):
    """The sizes of storages that a forward saves, by storage."""
    inputs = [torch.ones(4, 4, device="cuda", requires_grad=True) for _ in range(operands)]
    saved = {}

    def pack(t):
        saved[t.untyped_storage()._cdata] = t
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = fn(*inputs)
    own = {x.untyped_storage()._cdata for x in inputs}
    return result, sum(t.untyped_storage().nbytes() for key, t in saved.items() if key not in own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=pathlib.Path, default=common.ROOT / "tensor/testdata/kept.txt")
    file = parser.parse_args().file
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    lines = []
    for table, operands in ((autocast_reference.ONE, 1), (autocast_reference.TWO, 2)):
        for name, fn in table.items():
            with FakeTensorMode():
                try:
                    result, size = kept(fn, operands)
                except RuntimeError as error:  # statistics that want no gradients
                    print(f"without {name}: {error}")
                    continue
            if result.requires_grad:
                lines.append(f"{name} {size}")
    file.write_text(f"# bench/pytorch/kept_reference.py, torch {torch.__version__}\n" + "\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} operations in {file}")


if __name__ == "__main__":
    main()

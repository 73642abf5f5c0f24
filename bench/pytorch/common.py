"""What the reference scripts share: paths, determinism, files.

Convention of every golden file: a tensor is stored row-major in its PyTorch
shape. Unless a script says otherwise, the numbers were computed in float64 from
inputs that are exact in float32, and rounded once when stored, so that a
difference is the error of the code under test and not of PyTorch's own float32.
"""

import json
import pathlib
import platform

import numpy as np
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


def deterministic(seed):
    """One thread, deterministic algorithms, seeded generators."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)


def versions(*modules):
    """Versions of what computed a golden file, for its JSON."""
    out = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    out.update({m.__name__: m.__version__ for m in modules})
    return out


def save_tensors(path, tensors):
    """Writes name → tensor as safetensors; makes the folder."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # clone: safetensors refuses tensors that share storage.
    save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, path, metadata={"format": "pt"})


def save_json(path, value):
    """Writes indented JSON; floats keep every digit; NaN is refused."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n")


def relative_norm(got, want):
    """‖got − want‖ / ‖want‖ in float64; the plain norm of got where want is 0."""
    got, want = torch.as_tensor(got).double(), torch.as_tensor(want).double()
    scale = want.norm().item()
    return (got - want).norm().item() / (scale if scale > 0 else 1.0)


def read_log(run):
    """Losses of a run folder's log.jsonl in step order, and its final line ({} if none)."""
    losses, final = {}, {}
    for line in (pathlib.Path(run) / "log.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record.get("final"):
            final = record
        elif "step" in record and "loss" in record:
            losses[record["step"]] = record["loss"]
    return [losses[s] for s in sorted(losses)], final


def print_losses(got, want):
    """Prints got beside want per step and returns the largest relative error (inf if steps are missing)."""
    if len(got) != len(want):
        print(f"steps: log has {len(got)}, reference has {len(want)}")
        return float("inf")
    worst = 0.0
    for step, (g, w) in enumerate(zip(got, want), 1):
        error = abs(g - w) / abs(w)
        # NaN compares false with everything: it must not pass.
        worst = error if not error <= worst else worst
        print(f"step {step:3d}  got {g:.9f}  want {w:.9f}  relative error {error:.2e}")
    return worst


def verdict(checks):
    """Prints (name, value, bar) rows, says whether all hold, returns the exit status."""
    bad = 0
    for name, value, bar in checks:
        ok = value <= bar
        bad += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {value:.3e} (bar {bar:.0e})")
    return 1 if bad else 0

"""The steps of torch.optim for main.go: "name turns" in, seconds per step out; the parameters are those of a small GPT."""
import sys
import time

import torch

torch.set_num_threads(2)
BLOCK = [(384, 128), (384,), (128, 128), (128,), (512, 128), (512,), (128, 512), (128,), (128,), (128,), (128,), (128,)]
SHAPES = [(65, 128), (256, 128)] + 4 * BLOCK + [(128,), (128,)]
OF = {"sgd": ("SGD", {}), "adam": ("Adam", {}), "adamw": ("AdamW", {}), "amsgrad": ("AdamW", {"amsgrad": True}), "nadam": ("NAdam", {}), "radam": ("RAdam", {}),
      "adamax": ("Adamax", {}), "rmsprop": ("RMSprop", {}), "adagrad": ("Adagrad", {}), "adadelta": ("Adadelta", {}), "rprop": ("Rprop", {}),
      "asgd": ("ASGD", {}), "adafactor": ("Adafactor", {}), "muon": ("Muon", {})}
FUSED = {"SGD", "Adam", "AdamW", "Adagrad"}
made = {}


class Both:
    """Muon for matrices and AdamW for the rest."""

    def __init__(self, params):
        self.parts = [torch.optim.Muon([p for p in params if p.dim() == 2], lr=1e-4), torch.optim.AdamW([p for p in params if p.dim() != 2], lr=1e-4, fused=True)]

    def step(self):
        for o in self.parts:
            o.step()


def make(name):
    torch.manual_seed(1)
    params = [torch.randn(s).mul_(0.02).requires_grad_() for s in SHAPES]
    for p in params:
        p.grad = torch.randn(p.shape) * 0.01
    kind, options = OF[name]
    if kind == "Muon":
        return [Both(params)]
    ways = [{"fused": True}] if kind in FUSED else [{"foreach": True}, {"foreach": False}]
    return [getattr(torch.optim, kind)(params, lr=1e-4, **options, **way) for way in ways]


for line in sys.stdin:
    name, turns = line.split()
    if name not in OF:
        print(0, flush=True)
        continue
    best = None
    for o in made.setdefault(name, make(name) if name not in made else None):
        o.step()
        begun = time.perf_counter()
        for _ in range(int(turns)):
            o.step()
        took = (time.perf_counter() - begun) / int(turns)
        best = took if best is None else min(best, took)
    print(best, flush=True)

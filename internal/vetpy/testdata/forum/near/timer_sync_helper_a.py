"""Latency of a few backbones. The synchronisation sits in the helper."""
import argparse
import time
from contextlib import contextmanager

import torch
import torchvision.models as M


def now():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def stopwatch(store):
    t0 = now()
    yield
    store.append(now() - t0)


def by_events(model, x, n):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(n):
        model(x)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / n


def bench(name, batch, size, n):
    model = getattr(M, name)(weights=None).cuda().eval()
    x = torch.randn(batch, 3, size, size, device="cuda")
    times = []
    with torch.inference_mode():
        for _ in range(10):
            model(x)
        for _ in range(n):
            with stopwatch(times):
                model(x)
        t0 = now()
        for _ in range(n):
            model(x)
        total = now() - t0
        ev = by_events(model, x, n)
    times.sort()
    return times[len(times) // 2] * 1e3, total / n * 1e3, ev


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--models", nargs="+", default=["resnet18", "resnet50", "convnext_tiny"])
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--size", type=int, default=224)
    ap.add_argument("-n", type=int, default=50)
    a = ap.parse_args()
    for m in a.models:
        med, mean, ev = bench(m, a.batch, a.size, a.n)
        print(f"{m:16s} median {med:7.2f} ms  mean {mean:7.2f} ms  events {ev:7.2f} ms")


if __name__ == "__main__":
    main()

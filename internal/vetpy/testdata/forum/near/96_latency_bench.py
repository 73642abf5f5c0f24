"""Latency of timm models; time.perf_counter() is only read after the device is idle."""
import argparse
import statistics
import time

import timm
import torch


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bench_wall(fn, device, n, warmup):
    for _ in range(warmup):
        fn()
    wait(device)
    times = []
    for _ in range(n):
        t0 = time.perf_counter()
        fn()
        wait(device)
        times.append(time.perf_counter() - t0)
    return times


def bench_events(fn, n, warmup):
    for _ in range(warmup):
        fn()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(n)]
    for start, end in pairs:
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [s.elapsed_time(e) / 1000 for s, e in pairs]


def bench_throughput(fn, device, n, batch):
    wait(device)
    t0 = time.time()
    for _ in range(n):
        fn()
    wait(device)
    return n * batch / (time.time() - t0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("models", nargs="+")
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--device", default="cuda")
    ap.add_argument("-n", type=int, default=50)
    args = ap.parse_args()
    device = torch.device(args.device)
    torch.backends.cudnn.benchmark = True

    x = torch.randn(args.batch, 3, 224, 224, device=device)
    for name in args.models:
        t0 = time.time()
        model = timm.create_model(name, pretrained=False)
        print(f"{name}: built on the host in {time.time() - t0:.1f}s")
        model = model.to(device).eval()
        with torch.inference_mode():
            def call():
                return model(x)
            wall = bench_wall(call, device, args.n, 10)
            print(f"  median {statistics.median(wall) * 1e3:.2f} ms (wall)")
            if device.type == "cuda":
                ev = bench_events(call, args.n, 10)
                print(f"  median {statistics.median(ev) * 1e3:.2f} ms (events)")
            print(f"  {bench_throughput(call, device, args.n, args.batch):.0f} img/s")


if __name__ == "__main__":
    main()

"""Measures torch.mm for main.go: a line of sizes in, seconds per product out."""
import sys
import time

import torch

cache = {}


def operands(m, n, k, ta, tb):
    key = m, n, k, ta, tb
    if key not in cache:
        cache.clear()
        a = torch.randn(k, m).t() if ta else torch.randn(m, k)
        b = torch.randn(n, k).t() if tb else torch.randn(k, n)
        cache[key] = a, b, torch.empty(m, n)
        for _ in range(3):
            torch.mm(a, b, out=cache[key][2])
    return cache[key]


for line in sys.stdin:
    m, n, k, ta, tb, threads, turns = map(int, line.split())
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    a, b, c = operands(m, n, k, ta, tb)
    torch.mm(a, b, out=c)
    start = time.perf_counter()
    for _ in range(turns):
        torch.mm(a, b, out=c)
    print((time.perf_counter() - start) / turns, flush=True)

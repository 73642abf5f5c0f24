"""fit.py makes the table of package counts of what `go run ./bench/dryrun` has collected:

	python3 bench/dryrun/fit.py launches.jsonl > internal/counts/kernels.json

A quantity of a kernel is a sum of at most four features of a launch, none of them taken away: those are chosen one after the other
with which the sum comes nearest to what was counted, in shares of it. It wants numpy and scipy.
"""

import json
import re
import sys
from collections import defaultdict
from multiprocessing import Pool

import numpy as np
from scipy.optimize import nnls

MOST = 4  # features of a quantity
LIKELY = 12  # that are tried at a time
TRAFFIC = "Wavefronts Requested Unique Own Lone Part GlobalWaits SharedWaits Barriers Hottest".split()
LARGEST = 1 << 20  # words beyond may be multipliers that stand for divisions
FIRST = 60  # words of the parameters in which sizes are


def words(launch):
    return [(i, v) for i, v in enumerate(launch["Numbers"] or []) if 1 <= v < LARGEST][:FIRST]


def features(launch):
    """Features by name, as package counts reads the names."""
    blocks = float(np.prod(launch["Grid"]))
    f = {"B": blocks, "x": launch["Grid"][0], "y": launch["Grid"][1], "z": launch["Grid"][2]}
    if launch["Op"] != "linear_cross_entropy":  # of whose plan each kernel does a part
        f |= {"Y": launch["Bytes"], "F": launch["FLOPs"], "O": launch["Out"], "I": launch["In"]}
    for i, v in words(launch):
        f[f"p{i}"] = v
        f[f"B*p{i}"] = blocks * v
    if launch["Kernel"].startswith(("gemm", "conv")):
        f |= tiled(launch, blocks)
    return f


def tiled(launch, blocks):
    """Features of products in tiles: parts of sums, and rows in whole columns of tiles."""
    f = {}
    side = 128 if re.match(r"[a-z_]*128_|gemm_large", launch["Kernel"]) else 64
    sizes = words(launch)
    for i, v in sizes:
        for j, u in sizes:
            if i != j and u <= 64:
                f[f"B*p{i}/p{j}"] = blocks * v / u
            if i != j and min(u, v) > 1:
                f[f"p{i}*p{j}^{side}"] = v * -(-u // side)
    return f


def quantity(work, name):
    if name[0] == "i":
        return work["Instructions"][int(name[1:])]
    if name[0] == "t":
        return work["Tensor"][int(name[1:])]
    if name == "Own":
        return work["Own"] * work["Blocks"]
    return work[name]


def quantities(work):
    return [f"i{k}" for k in range(len(work["Instructions"]))] + [f"t{k}" for k in range(len(work["Tensor"]))] + TRAFFIC


def table_of(launches):
    """The features of launches as columns: those that differ, each once."""
    rows = [features(x) for x in launches]
    names = list(dict.fromkeys(n for row in rows for n in row))
    blocks = np.array([row["B"] for row in rows])
    kept, columns, seen = [], [], set()
    for n in names:
        c = np.array([row.get(n, 0.0) for row in rows], float)
        if not c.any() or n[0] == "p" and c.min() == c.max() or ("/" in n or "^" in n) and c.min() <= 0:
            continue
        if n.startswith("B*p") and counts_blocks(np.array([row.get(n[2:].split("/")[0], 0.0) for row in rows]), blocks):
            continue
        mark = tuple(np.round(c / c.max(), 9)) if len(c) > 1 else n
        if mark not in seen:
            seen.add(mark)
            kept.append(n)
            columns.append(c)
    return kept, np.array(columns).T, blocks


def counts_blocks(p, blocks):
    """Whether a parameter says how many blocks there are along a dimension, and not how much each of them does."""
    some = (p > 1) & (blocks > 1)
    if some.sum() < 3:
        return False
    p, blocks = p[some], blocks[some]
    ratio = p / blocks
    return np.mean(blocks % p == 0) > 0.9 or ratio.std() < 0.2 * ratio.mean()


def solve(a, b):
    """Numbers, none negative, with small deviations, of which a few may be large; and the deviations."""
    c, _ = nnls(a, b)
    off = np.abs(a @ c - b)
    for _ in range(3):
        u = 1 / np.sqrt(np.maximum(off, 0.01))
        again, _ = nnls(a * u[:, None], b * u)
        less = np.abs(a @ again - b)
        if less.mean() >= off.mean() - 1e-6:
            break
        c, off = again, less
    return c, off


def fit(names, x, y, blocks, most):
    """The sum of features that comes nearest to y."""
    a, b, scale = weighed(x, y, blocks)
    weight = np.log2(2 + blocks)  # large launches are what takes time
    weight /= weight.sum()
    squares = (a * a).sum(axis=0)

    def judged(chosen):
        c, off = solve(a[:, chosen], b)
        odd = sum(0.002 if "^" in names[i] else 0.003 for i in chosen if names[i][0] in "pxyz")
        return np.minimum(off, 1) @ weight + 0.02 * min(1, off.max()) + odd + 0.002 * len(chosen), c

    def likely(chosen):
        """The features that take away most of what the chosen ones leave."""
        left = b if not chosen else b - a[:, chosen] @ nnls(a[:, chosen], b)[0]
        gain = np.maximum(left @ a, 0) ** 2 / squares
        gain[chosen] = -1
        return [i for i in np.argsort(-gain, kind="stable")[:LIKELY] if gain[i] >= 0]

    chosen, best, numbers = [], np.inf, []
    while len(chosen) < most:
        tries = [(*judged(chosen + [i]), i) for i in likely(chosen)]
        if not tries:
            break
        e, c, i = min(tries, key=lambda t: t[0])
        if e >= best - 1e-4:
            break
        best, numbers, chosen = e, c, chosen + [i]
        for at in range(len(chosen)):
            for i in likely(chosen[:at] + chosen[at + 1 :]):
                other = chosen[:at] + [i] + chosen[at + 1 :]
                if i not in chosen and (found := judged(other))[0] < best - 1e-4:
                    best, numbers, chosen = *found, other
    return {names[i]: float(f"{c / scale[i]:.4g}") for i, c in zip(chosen, numbers) if c > 0}


def weighed(x, y, blocks):
    """Features and counts as shares of about what was counted."""
    w = 1 / (y + 0.3 * blocks * np.median(y / blocks) + 0.01 * y.max() * blocks / blocks.max())
    a = x * w[:, None]
    scale = np.abs(a).max(axis=0)
    return a / scale, y * w, scale


def main():
    kernels, seen = defaultdict(list), set()
    for text in open(sys.argv[1]):
        launch = json.loads(text)
        key = json.dumps([launch[name] for name in ("Kernel", "Grid", "Numbers", "Bytes", "FLOPs")])
        if key not in seen:  # several programs have it
            seen.add(key)
            kernels[launch["Kernel"]].append(launch)
    with Pool() as pool:
        lines = pool.map(row_of, sorted(kernels.items()), chunksize=1)
    print("{\n" + ",\n".join(lines) + "\n}")


def row_of(item):
    """A kernel's line of the table."""
    kernel, launches = item
    names, x, blocks = table_of(launches)
    row = {}
    for q in quantities(launches[0]["Work"]):
        y = np.array([quantity(launch["Work"], q) for launch in launches], float)
        if y.any():
            row[q] = fit(names, x, y, blocks, min(MOST, max(1, len(launches) // 2)))
    return json.dumps(kernel) + ":" + json.dumps(row, separators=(",", ":"))


if __name__ == "__main__":
    main()

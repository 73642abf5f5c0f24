"""Reads a snapshot with PyTorch's own tools and replays its events.

    python check.py DIR

DIR is what the command beside left: snapshot.pickle and counters.json. It needs PyTorch; nothing else.
"""

import json
import pickle
import re
import subprocess
import sys

from torch.cuda import _memory_viz

folder = sys.argv[1]
counters = json.load(open(folder + "/counters.json"))
with open(folder + "/snapshot.pickle", "rb") as f:
    snapshot = pickle.load(f)


def want(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, wanted {wanted}")
    print(f"{what}: {got}")


def stats():
    """python -m torch.cuda._memory_viz stats."""
    text = subprocess.run(
        [sys.executable, "-m", "torch.cuda._memory_viz", "stats", folder + "/snapshot.pickle"],
        check=True, capture_output=True, text=True,
    ).stdout
    figure = lambda name: re.search(name + r": (\S+)", text).group(1)
    size = lambda n: str(_memory_viz.Bytes(n))
    want("stats, reserved", figure("total_reserved"), size(counters["reserved"]))
    want("stats, allocated", figure("total_allocated"), size(counters["requested"]))


def segments():
    """python -m torch.cuda._memory_viz segments, before its lines become a picture (by a script that it fetches)."""
    folded = _memory_viz.segments(snapshot, format_flamegraph=lambda lines: lines)
    sums = {}
    for line in folded.splitlines():
        stack, n = line.rsplit(" ", 1)
        state = stack.split(";")[2]
        key = (state, stack.endswith("<gaps>"))
        sums[key] = sums.get(key, 0) + int(n)
    used = sums.get(("active_allocated", False), 0)
    want("segments, asked for", used + sums.get(("active_pending_free", False), 0), counters["requested"])
    want("segments, allocated", used + sums.get(("active_allocated", True), 0), counters["allocated"])
    want("segments, reserved", sum(sums.values()), counters["reserved"])


def final(device):
    """The state that the segments tell: segments, and blocks with whether they wait."""
    segs, blocks = {}, {}
    for s in snapshot["segments"]:
        if s["device"] != device:
            continue
        segs[s["address"]] = s["total_size"]
        at = s["address"]
        for b in s["blocks"]:
            assert b["address"] == at, (b, at)
            at += b["size"]
            if b["state"] != "inactive":
                blocks[b["address"]] = (b["size"], b["state"] == "active_pending_free")
        assert at == s["address"] + s["total_size"], s
    return segs, blocks


def step(e, segs, blocks, back):
    """Goes over an event, or back over it."""
    action, addr, size = e["action"], e.get("addr"), e["size"]
    appears = {"segment_alloc": True, "segment_free": False, "alloc": True, "free_completed": False}
    if action in ("snapshot", "oom"):
        return
    if action == "free_requested":
        assert blocks[addr] == (size, back), (e, blocks[addr])
        blocks[addr] = (size, not back)
        return
    where = segs if action.startswith("segment") else blocks
    value = size if where is segs else (size, action == "free_completed")
    if appears[action] != back:
        assert addr not in where, (e, where[addr])
        where[addr] = value
        if where is blocks:
            assert any(a <= addr and addr + size <= a + n for a, n in segs.items()), e
    else:
        assert where[addr] == value, (e, where[addr])
        del where[addr]


def replay():
    """Back from the last state to the first, and forth to the last."""
    for device, trace in enumerate(snapshot["device_traces"]):
        segs, blocks = final(device)
        for e in reversed(trace):
            step(e, segs, blocks, True)
        began = len(segs), len(blocks)
        for e in trace:
            step(e, segs, blocks, False)
        assert (segs, blocks) == final(device)
        print(f"device {device}: {len(trace)} events from {began} segments and blocks to {len(segs), len(blocks)}")


stats()
segments()
replay()

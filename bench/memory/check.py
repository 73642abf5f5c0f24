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


class State:
    """Segments by address, the ranges of expandable ones of which no two touch, and blocks with whether they wait."""

    def __init__(self):
        self.segs, self.mapped, self.blocks = {}, {}, {}

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __repr__(self):
        return f"{len(self.segs)} segments, {len(self.mapped)} ranges, {len(self.blocks)} blocks"

    def cover(self, addr, size):
        for at, n in list(self.mapped.items()):
            assert addr + size <= at or at + n <= addr, (hex(addr), size)
            if at + n == addr or addr + size == at:
                del self.mapped[at]
                addr, size = min(addr, at), size + n
        self.mapped[addr] = size

    def uncover(self, addr, size):
        assert not any(at < addr + size and addr < at + n for at, (n, _) in self.blocks.items()), (hex(addr), size)
        at, n = next((at, n) for at, n in self.mapped.items() if at <= addr and addr + size <= at + n)
        del self.mapped[at]
        if at < addr:
            self.mapped[at] = addr - at
        if addr + size < at + n:
            self.mapped[addr + size] = at + n - addr - size

    def inside(self, addr, size):
        return any(a <= addr and addr + size <= a + n for of in (self.segs, self.mapped) for a, n in of.items())


def final(device):
    """The state that the segments tell."""
    s = State()
    for seg in snapshot["segments"]:
        if seg["device"] != device:
            continue
        if seg["is_expandable"]:
            s.cover(seg["address"], seg["total_size"])
        else:
            s.segs[seg["address"]] = seg["total_size"]
        at = seg["address"]
        for b in seg["blocks"]:
            assert b["address"] == at, (b, at)
            at += b["size"]
            if b["state"] != "inactive":
                s.blocks[b["address"]] = (b["size"], b["state"] == "active_pending_free")
        assert at == seg["address"] + seg["total_size"], seg
    return s


APPEARS = {"segment_alloc": True, "segment_free": False, "alloc": True, "free_completed": False}


def step(e, s, back):
    """Goes over an event, or back over it."""
    action, addr, size = e["action"], e.get("addr"), e["size"]
    if action in ("snapshot", "oom"):
        return
    if action in ("segment_map", "segment_unmap"):
        (s.cover if (action == "segment_map") != back else s.uncover)(addr, size)
        return
    if action == "free_requested":
        assert s.blocks[addr] == (size, back), (e, s.blocks[addr])
        s.blocks[addr] = (size, not back)
        return
    where = s.segs if action.startswith("segment") else s.blocks
    value = size if where is s.segs else (size, action == "free_completed")
    if APPEARS[action] != back:
        assert addr not in where, (e, where[addr])
        where[addr] = value
        assert where is s.segs or s.inside(addr, size), e
    else:
        assert where[addr] == value, (e, where[addr])
        del where[addr]


def replay():
    """Back from the last state to the first, and forth to the last."""
    for device, trace in enumerate(snapshot["device_traces"]):
        s = final(device)
        for e in reversed(trace):
            step(e, s, True)
        began = repr(s)
        for e in trace:
            step(e, s, False)
        assert s == final(device)
        actions = {}
        for e in trace:
            actions[e["action"]] = actions.get(e["action"], 0) + 1
        print(f"device {device}: {len(trace)} events from {began} to {s}: {actions}")


stats()
segments()
replay()

"""What PyTorch gives for the calls of examples/pytorch: python bench/pytorch/calls_reference.py

Reads the rows of the test files there, makes the values that a function makes by pattern, and evaluates PyTorch's spellings.
What cannot be evaluated, because it draws numbers or needs a model, is left out. Writes
examples/pytorch/testdata/values.json, with which the tests compare.
"""

import glob
import json
import re

import torch
import torch.nn as nn
import torch.nn.functional as F

# How values that are not made by pattern are made in Python.
MADE = {
    "x.Square().AddScalar(0.5)": "x.square() + 0.5",
    "pattern(env, 3, 0, 5, 4).Square().AddScalar(0.5)": "pattern(3, 0, 5, 4).square() + 0.5",
    "x.Sigmoid()": "x.sigmoid()",
    "x.Gt(y)": "x > y",
    "x.GtScalar(0)": "x > 0",
    "x.GtScalar(0).Cast(dtype.F32)": "(x > 0).float()",
    "x.Sign()": "x.sign()",
    "sign.Select(1, 0)": "sign[:, 0]",
}

LITERAL = re.compile(r"tensor\.From\(env, \[\](int64|float32)\{([-\d., ]*)\}, ([\d, ]+)\)")


def pattern(a, b, m, *shape):
    """((a·i + b) mod m - ⌊m/2⌋) / 2, as pattern of missing_test.go."""
    n = 1
    for d in shape:
        n *= d
    return torch.tensor([((a * i + b) % m - m // 2) / 2 for i in range(n)]).reshape(shape)


def split(text):
    """The parts of a text between the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def values(v):
    """A result as lists of numbers, or None for what has none."""
    if isinstance(v, torch.Tensor):
        return [[float(f"{f:.8g}") for f in v.detach().double().flatten().tolist()]]
    if isinstance(v, bool):
        return [[float(v)]]
    if isinstance(v, (tuple, list)) and all(isinstance(e, torch.Tensor) for e in v):
        return [values(e)[0] for e in v]
    return None


def function(text):
    """The calls of one function."""
    scope, results, comment = {"torch": torch, "nn": nn, "F": F}, {}, ""
    for line in text.split("\n"):
        line = line.strip()
        made = re.fullmatch(r"(\w+(?:, \w+)*) := (.*)", line)
        if made:
            for name, code in zip(made[1].split(", "), split(made[2])):
                literal = LITERAL.fullmatch(code)
                if literal:
                    code = "torch.tensor([{1}], dtype=torch.{0}).reshape({2})".format(*literal.groups())
                else:
                    code = MADE.get(code) or (re.sub(r"^pattern\(env, ", "pattern(", code) if code.startswith("pattern(") else None)
                if code:
                    try:
                        scope[name] = eval(code, dict(scope, pattern=pattern))
                    except NameError:  # of a value that is not made by pattern
                        scope.pop(name, None)
        if line.startswith("// "):
            comment += line[3:] + " "
            continue
        if comment.startswith("`") and ("pattern(env" in text or LITERAL.search(text)):
            for call in re.findall(r"`([^`]+)`", comment.split(" | ")[0]):
                try:
                    torch.manual_seed(0)
                    got = values(eval(call, dict(scope)))
                    torch.manual_seed(1)
                    again = values(eval(call, dict(scope)))
                except Exception:
                    continue
                if got is not None and got == again:
                    results[call] = got
        comment = ""
    return results


def main():
    out = {}
    for path in sorted(glob.glob("examples/pytorch/*_test.go")):
        for m in re.finditer(r"^func (Test\w+)\(.*?^}", open(path).read(), re.M | re.S):
            calls = function(m[0])
            if calls:
                out[m[1]] = calls
    text = json.dumps(out, ensure_ascii=False, separators=(",", ":")).replace('"Test', '\n"Test').replace("]],", "]],\n")
    with open("examples/pytorch/testdata/values.json", "w") as f:
        f.write(text + "\n")
    print(sum(map(len, out.values())), "calls")


if __name__ == "__main__":
    main()

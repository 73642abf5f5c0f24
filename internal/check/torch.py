"""Runs what warpline check --torch asks for: a JSON line in, a JSON line out; tensors go through safetensors files.

Needs PyTorch alone. TF32 is off, so that float32 products are float32 products on both sides."""
import ctypes
import json
import struct
import sys
import time

import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64}


def read(path, device):
    raw = bytearray(open(path, "rb").read())
    size = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            lo, hi = (8 + size + x for x in entry["data_offsets"])
            flat = torch.frombuffer(raw[lo:hi], dtype=TYPES[entry["dtype"]])
            out[name] = flat.reshape(entry["shape"]).to(device)
    return out


def write(path, y):
    y = y.detach().float().cpu().contiguous()
    header = json.dumps({"y": {"dtype": "F32", "shape": list(y.shape), "data_offsets": [0, 4 * y.numel()]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        f.write(ctypes.string_at(y.data_ptr(), 4 * y.numel()))


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def mlp(w, x):
    return F.linear(F.relu(F.linear(x, w["0.weight"], w["0.bias"])), w["1.weight"], w["1.bias"])


def norm(w, name, x):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)


def line(w, name, x):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def gpt(w, tokens, layers, heads):
    t = "transformer."
    b, n = tokens.shape
    x = F.embedding(tokens, w[t + "wte.weight"]) + w[t + "wpe.weight"][:n]
    for i in range(layers):
        p = t + f"h.{i}."
        qkv = line(w, p + "attn.c_attn", norm(w, p + "ln_1", x)).view(b, n, 3, heads, -1).permute(2, 0, 3, 1, 4)
        x = x + line(w, p + "attn.c_proj", attend(*qkv).transpose(1, 2).reshape(b, n, -1))
        x = x + line(w, p + "mlp.c_proj", F.gelu(line(w, p + "mlp.c_fc", norm(w, p + "ln_2", x)), approximate="tanh"))
    return F.linear(norm(w, t + "ln_f", x), w[t + "wte.weight"]).flatten(0, 1)


class Steps:
    """Training steps of AdamW; calling it runs one and gives its loss."""

    def __init__(self, w, forward, labels):
        self.w = {n: p.clone().requires_grad_() for n, p in w.items()}
        self.opt = torch.optim.AdamW(self.w.values(), lr=1e-3, weight_decay=0.01)
        self.forward, self.labels = forward, labels

    def __call__(self):
        self.opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.forward(self.w), self.labels)
        loss.backward()
        self.opt.step()
        return loss.detach()


def job(q, t):
    """A function that does the work once."""
    name = q["job"]
    if name == "gemm":
        return lambda: t["a"] @ t["b"]
    if name == "norm":
        return lambda: F.layer_norm(t["x"], t["x"].shape[-1:], t["w"], t["b"], 1e-5)
    if name == "attention":
        return lambda: attend(t["q"], t["k"], t["v"])
    weights = {n: p for n, p in t.items() if n not in ("x", "y")}
    if name == "mlp step":
        return Steps(weights, lambda w: mlp(w, t["x"]), t["y"])
    return Steps(weights, lambda w: gpt(w, t["x"], q["layers"], q["heads"]), t["x"].flatten())


def clock(q, f, wait):
    """Seconds of a turn: after some turns to warm up, the median of rounds of as many as fill one, with a wait at its end."""

    def took(turns):
        start = time.perf_counter()
        for _ in range(turns):
            f()
        wait()
        return time.perf_counter() - start

    start = time.perf_counter()
    took(1)
    one = took(1)
    while time.perf_counter() - start < q["warm"]:
        one = took(1)
    turns = int(min(q["round"] / max(one, 1e-9), q["most"] - 1)) + 1
    rounds, start = [], time.perf_counter()
    while not rounds or len(rounds) < q["rounds"] and time.perf_counter() - start < q["enough"]:
        rounds.append(took(turns) / turns)
    return sorted(rounds)[len(rounds) // 2]


def run(q):
    device = torch.device(q["device"])
    wait = (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else lambda: None
    f = job(q, read(q["in"], device))
    if q["job"].endswith("step"):
        y = torch.stack([f() for _ in range(q["losses"])])
    else:
        y = f()
    write(q["out"], y)
    del y
    return {"seconds": clock(q, f, wait)}


cards = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps({"torch": torch.__version__, "cuda": cards}), flush=True)
for text in sys.stdin:
    try:
        answer = run(json.loads(text))
    except Exception as e:  # told to the asker, who goes on
        answer = {"error": f"{type(e).__name__}: {e}"}
    if cards:
        torch.cuda.empty_cache()  # the other side works on the same card next
    print(json.dumps(answer), flush=True)

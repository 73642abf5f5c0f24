"""The race's cases in PyTorch, for main.go: "bench case n dtype layout threads turns clock" in, seconds per turn out.

Layouts are nchw and cl (channels_last); the clock is wall or cpu (the process's own). The cases mirror internal/bench."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 1024
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}


def gemm(case, n, dt):
    shapes = {"square": (n, n, n), "transposed": (n, n, n), "vector": (1, n, n), "tall": (n, 128, 128), "odd": (n, 65, 33),
              "batched": (64, 64, 64), "linear": (n, 512, 128), "linear-dx": (n, 128, 512), "linear-dw": (512, 128, n)}
    m, cols, k = shapes[case]
    lead = (n,) if case == "batched" else ()

    def matrix(rows, columns, transposed):
        if transposed:
            return torch.randn(*lead, columns, rows).to(dt).transpose(-1, -2)
        return torch.randn(*lead, rows, columns).to(dt)

    a = matrix(m, k, case in ("transposed", "linear-dw"))
    b = matrix(k, cols, case in ("transposed", "linear"))
    return lambda: torch.matmul(a, b)


BURST = 32


def ops(case, n, dt, layout):
    def draw(*shape):
        t = torch.randn(*shape).to(dt)
        return t.contiguous(memory_format=torch.channels_last) if layout == "cl" and t.dim() == 4 else t

    def learned(t):
        return t.requires_grad_()

    def weighed(f, g, *learners):
        def turn():
            (f() * g).sum().backward()
            for t in learners:
                t.grad = None
        return turn

    if case in ("add-4", "add-4-grad"):
        x, y = torch.randn(n), torch.randn(n)
        x.requires_grad_(case == "add-4-grad")

        def burst():
            for _ in range(BURST):
                torch.add(x, y)
        return burst
    if case in ("add", "relu", "exp", "tanh", "gelu", "dropout"):
        x = draw(n)
        return {"add": lambda: x + x, "relu": lambda: torch.relu(x), "exp": lambda: torch.exp(x), "tanh": lambda: torch.tanh(x),
                "gelu": lambda: F.gelu(x, approximate="tanh"), "dropout": lambda: F.dropout(x, 0.1)}[case]
    if case in ("rand", "randn"):
        return {"rand": lambda: torch.rand(n, dtype=dt), "randn": lambda: torch.randn(n, dtype=dt)}[case]
    if case in ("sort-line", "topk-line"):
        x = draw(n)
        return {"sort-line": lambda: torch.sort(x), "topk-line": lambda: torch.topk(x, 50)}[case]
    if case in ("softmax", "layernorm", "sum-rows", "sum-columns", "transpose", "cat", "sort", "topk"):
        x, w, b = draw(max(1, n // WIDTH), WIDTH), draw(WIDTH), draw(WIDTH)
        return {"softmax": lambda: torch.softmax(x, -1), "layernorm": lambda: F.layer_norm(x, (WIDTH,), w, b),
                "sum-rows": lambda: x.sum(1), "sum-columns": lambda: x.sum(0), "transpose": lambda: x.t().contiguous(),
                "cat": lambda: torch.cat((x, x), 1), "sort": lambda: torch.sort(x, 1), "topk": lambda: torch.topk(x, 50, 1)}[case]
    if case.startswith("scatter"):
        x, src, idx = draw(n // WIDTH, WIDTH), draw(n // WIDTH, WIDTH), torch.randint(WIDTH, (n // WIDTH, WIDTH))
        return {"scatter": lambda: x.scatter(1, idx, src), "scatter-max": lambda: x.scatter_reduce(1, idx, src, "amax"),
                "scatter-sum": lambda: x.scatter_reduce(1, idx, src, "sum")}[case]
    if case == "embedding-grad":
        table, ids, g = learned(draw(10_000, 256)), torch.randint(1000, (n,)), draw(n, 256)
        return weighed(lambda: F.embedding(ids, table), g, table)
    if case == "cross-entropy":
        x, y = learned(draw(n, 50257)), torch.randint(50257, (n,))

        def loss():
            F.cross_entropy(x, y).backward()
            x.grad = None
        return loss
    if case == "batchnorm":
        x, g, norm = learned(draw(n, 64, 28, 28)), draw(n, 64, 28, 28), nn.BatchNorm2d(64)
        return weighed(lambda: norm(x), g, x, norm.weight, norm.bias)
    if case == "conv-transpose":
        x, w, b, g = learned(draw(n, 64, 14, 14)), learned(draw(64, 32, 4, 4)), learned(draw(32)), draw(n, 32, 28, 28)
        return weighed(lambda: F.conv_transpose2d(x, w, b, stride=2, padding=1), g, x, w, b)
    if case.startswith("interpolate"):
        size, how = {"": (64, {"mode": "bilinear"}), "-nearest": (64, {"mode": "nearest"}), "-bicubic": (64, {"mode": "bicubic"}),
                     "-antialias": (12, {"mode": "bilinear", "antialias": True})}[case.removeprefix("interpolate")]
        x, g = learned(draw(n, 32, 32, 32)), draw(n, 32, size, size)
        return weighed(lambda: F.interpolate(x, size, **how), g, x)
    if case in ("lstm", "gru"):
        layer, x, g = {"lstm": nn.LSTM, "gru": nn.GRU}[case](256, 256).to(dt), learned(draw(n, 32, 256)), draw(n, 32, 256)
        return weighed(lambda: layer(x)[0], g, x, *layer.parameters())
    if case == "maxpool":
        x, g = learned(draw(n, 64, 28, 28)), draw(n, 64, 14, 14)
        return weighed(lambda: F.max_pool2d(x, 2), g, x)
    if case in ("conv2d", "conv2d-grad"):
        x, w, b = draw(n, 32, 28, 28), draw(64, 32, 3, 3), draw(64)
        if case == "conv2d":
            return lambda: F.conv2d(x, w, b, padding=1)
        x, w, b, g = learned(x), learned(w), learned(b), draw(n, 64, 28, 28)
        return weighed(lambda: F.conv2d(x, w, b, padding=1), g, x, w, b)
    params = [learned(draw(max(1, n // 10))) for _ in range(10)]
    for p in params:
        p.grad = draw(*p.shape)
    return torch.optim.AdamW(params, lr=1e-3, fused=True).step


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None, at=0):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            cache[0][:, :, at] = k[:, :, 0]
            cache[1][:, :, at] = v[:, :, 0]
            y = F.scaled_dot_product_attention(q, cache[0][:, :, :at + 1], cache[1][:, :, :at + 1])
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocab, context, layers, heads, width):
        super().__init__()
        self.context, self.heads, self.width = context, heads, width
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for b in self.blocks:
            x = b(x)
        return F.linear(self.ln(x), self.wte.weight).flatten(0, 1)

    @torch.inference_mode()
    def generate(self, n):
        hd = self.width // self.heads
        caches = [[torch.zeros(1, self.heads, self.context, hd) for _ in range(2)] for _ in self.blocks]
        token, out = torch.tensor([[1]]), []
        for at in range(n):
            x = self.wte(token) + self.wpe.weight[at]
            for b, cache in zip(self.blocks, caches):
                x = b(x, cache, at)
            token = F.linear(self.ln(x), self.wte.weight).argmax(-1)
            out.append(token.item())
        return out


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=10)


def train(case, n, dt, layout):
    size = (65, 256, 6, 6, 384) if case.endswith("384") else (65, 256, 4, 4, 128)
    if case.startswith("generate"):
        g = GPT(*size).eval()
        return lambda: g.generate(n)
    if case.startswith("gpt"):
        model, x = GPT(*size), torch.randint(65, (n, 256))
        y = x.flatten()
        if layout == "compiled":
            model = torch.compile(model)
    else:
        build, shape = {"mlp": (mlp, (784,)), "mlp-adamw": (mlp, (784,)), "convnet": (convnet, (1, 28, 28)), "resnet18": (resnet18, (3, 64, 64))}[case]
        model, x, y = build(), torch.rand(n, *shape), torch.randint(10, (n,))
        if layout == "cl":
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True) if case == "mlp" else torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step():
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dt, enabled=dt != torch.float32):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    return step


PER_TURN = 50


class Bytes(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].float() / 255, self.y[i]


class Windows(torch.utils.data.Dataset):
    def __init__(self, ids, length):
        self.ids, self.length = ids, length

    def __len__(self):
        return len(self.ids) - self.length

    def __getitem__(self, i):
        part = self.ids[i:i + self.length + 1].long()
        return part[:-1], part[1:]


def data(case, n):
    y = torch.zeros(60_000, dtype=torch.int64)
    if case == "digits":
        s = torch.utils.data.TensorDataset(torch.rand(60_000, 1, 28, 28), y)
    elif case == "idx":
        s = Bytes(torch.randint(256, (60_000, 1, 28, 28), dtype=torch.uint8), y)
    else:
        s = Windows(torch.zeros(1 << 20, dtype=torch.int16), 256)
    loader = torch.utils.data.DataLoader(s, batch_size=n, shuffle=True, num_workers=2, persistent_workers=True)

    def endless():
        while True:
            yield from loader
    batches = endless()

    def turn():
        for _ in range(PER_TURN):
            next(batches)
    return turn


def make(bench, case, n, dtype, layout):
    torch.manual_seed(0)
    dt = DTYPES[dtype]
    if bench == "gemm":
        return gemm(case, n, dt)
    if bench == "ops":
        return ops(case, n, dt, layout)
    return data(case, n) if bench == "data" else train(case, n, dt, layout)


class Network(nn.Module):
    """What bench/cpu/user.go has, in PyTorch."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(8))
        self.norms = nn.ModuleList(nn.BatchNorm2d(32) for _ in range(8))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for i in range(0, 8, 2):
            y = torch.relu(self.norms[i](self.convs[i](x)))
            x = torch.relu(x + self.norms[i + 1](self.convs[i + 1](y)))
        return self.head(x.mean((2, 3)))


def peak(training):
    """The most that the sum of what was allocated and freed comes to, weights included."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        model, x, y = Network(), torch.rand(64, 3, 32, 32), torch.randint(10, (64,))
        opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True) if training else None
        for _ in range(3):
            if training:
                opt.zero_grad(set_to_none=True)
                F.cross_entropy(model(x), y).backward()
                opt.step()
            else:
                with torch.inference_mode():
                    model.eval()(x)
    now = most = 0
    for e in sorted((e for e in p.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        now += e.nbytes()
        most = max(most, now)
    return most


def main():
    key, turn = None, None
    for line in sys.stdin:
        bench, case, n, dtype, layout, threads, turns, clock = line.split()
        if torch.get_num_threads() != int(threads):
            torch.set_num_threads(int(threads))
        if bench == "peak":
            print(peak(case == "training"), flush=True)
            continue
        if key != (bench, case, n, dtype, layout):
            turn = None
            key, turn = (bench, case, n, dtype, layout), make(bench, case, int(n), dtype, layout)
            turn()
        turn()
        now = time.process_time if clock == "cpu" else time.perf_counter
        start = now()
        for _ in range(int(turns)):
            turn()
        print((now() - start) / int(turns), flush=True)


main()

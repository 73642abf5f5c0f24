import csv
import time

import timm
import torch

ARCHS = ["resnet50", "mobilenetv3_large_100", "convnext_tiny", "vit_small_patch16_224"]
device = torch.device("cuda")


def train_step(model, opt, x, y, loss_fn):
    opt.zero_grad(set_to_none=True)
    loss = loss_fn(model(x), y)
    loss.backward()
    opt.step()
    return loss


def bench(arch, bs=64, n=50):
    model = timm.create_model(arch, num_classes=1000).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = torch.nn.CrossEntropyLoss()
    x = torch.randn(bs, 3, 224, 224, device=device)
    y = torch.randint(0, 1000, (bs,), device=device)
    model.train()
    for _ in range(10):
        train_step(model, opt, x, y, loss_fn)
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(n):
        train_step(model, opt, x, y, loss_fn)
    train_ms = (time.time() - start) / n * 1000

    model.eval()
    with torch.no_grad():
        model(x)
        start = time.perf_counter()
        for _ in range(n):
            model(x)
        infer_ms = (time.perf_counter() - start) / n * 1000
    return train_ms, infer_ms


with open("bench.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["arch", "train_ms", "infer_ms"])
    for arch in ARCHS:
        tr, inf = bench(arch)
        print(f"{arch:30s} train {tr:.2f} ms  infer {inf:.2f} ms")
        w.writerow([arch, f"{tr:.3f}", f"{inf:.3f}"])

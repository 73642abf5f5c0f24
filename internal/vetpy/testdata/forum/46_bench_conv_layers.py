import time
from collections import OrderedDict

import torch
import torch.nn as nn


def measure(layer, x, n=200):
    layer = layer.to("cuda").half()
    x = x.to("cuda").half()
    for _ in range(20):
        layer(x)
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(n):
        layer(x)
    return (time.time() - began) / n * 1e3


layers = OrderedDict(
    dense=nn.Conv2d(256, 256, 3, padding=1),
    depthwise=nn.Conv2d(256, 256, 3, padding=1, groups=256),
    pointwise=nn.Conv2d(256, 256, 1),
)
with torch.no_grad():
    for name, layer in layers.items():
        print(f"{name:10s} {measure(layer, torch.randn(32, 256, 56, 56)):.3f} ms")

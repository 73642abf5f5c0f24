import time

import numpy as np
import torch
import torchvision.models as models

model = models.resnet101(weights=None).cuda()
model.eval()
dummy = torch.randn(16, 3, 224, 224, device="cuda")

# warmup
with torch.no_grad():
    for _ in range(10):
        model(dummy)

times = []
with torch.no_grad():
    for i in range(100):
        t0 = time.time()
        out = model(dummy)
        t1 = time.time()
        times.append(t1 - t0)

print("mean inference %.3f ms" % (np.mean(times) * 1000))
print("std %.3f ms" % (np.std(times) * 1000))

import time

import torch
import torchvision

net = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights="DEFAULT").eval().to("cuda")
frames = torch.rand(200, 3, 520, 520)
n = 0
t_start = time.monotonic()
with torch.inference_mode():
    for f in frames.split(4):
        f = f.to("cuda")
        net(f)
        n += len(f)
secs = time.monotonic() - t_start
print("FPS", n / secs)

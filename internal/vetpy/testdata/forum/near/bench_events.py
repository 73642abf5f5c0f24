import time

import torch
import torch.nn as nn
from torchvision.models import resnet50

device = torch.device("cuda")
model = resnet50().to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 3, 224, 224, device=device)
y = torch.randint(0, 1000, (64,), device=device)
ce = nn.CrossEntropyLoss()


def step():
    opt.zero_grad(set_to_none=True)
    loss = ce(model(x), y)
    loss.backward()
    opt.step()


for _ in range(10):
    step()
torch.cuda.synchronize()
t0 = time.perf_counter()
for _ in range(50):
    step()
torch.cuda.synchronize()
print("host clock %.2f ms" % ((time.perf_counter() - t0) / 50 * 1e3))

start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
model.eval()
with torch.inference_mode():
    model(x)
    start.record()
    for _ in range(50):
        model(x)
    end.record()
torch.cuda.synchronize()
print("forward %.2f ms" % (start.elapsed_time(end) / 50))

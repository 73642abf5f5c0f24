import torch

x = torch.randn(128, 128, device="cuda")
for _ in range(3):
    x @ x
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
for _ in range(10):
    x @ x
end.record()
torch.cuda.synchronize()
print(start.elapsed_time(end) / 10, "ms")

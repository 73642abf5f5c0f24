import torch
from torch.utils import benchmark

x = torch.randn(1000, 1000, device="cuda")
print(benchmark.Timer("x @ x", globals={"x": x}).timeit(100))

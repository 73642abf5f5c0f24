import time

import torch


def bench(n, dtype):
    a = torch.randn(n, n, device="cuda", dtype=dtype)
    b = torch.randn(n, n, device="cuda", dtype=dtype)
    start = time.perf_counter()
    for _ in range(50):
        c = torch.matmul(a, b)
    elapsed = time.perf_counter() - start
    flops = 50 * 2 * n ** 3
    return flops / elapsed / 1e12


def main():
    print(torch.cuda.get_device_name(0))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for n in (1024, 2048, 4096, 8192):
            print(dtype, n, "%.1f TFLOPS" % bench(n, dtype))


if __name__ == "__main__":
    main()

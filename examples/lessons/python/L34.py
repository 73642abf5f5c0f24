import torch


class GPUMemoryTracker:
    def __enter__(self):
        torch.cuda.reset_peak_memory_stats()
        self.before = torch.cuda.memory_allocated()
        return self

    def __exit__(self, *error):
        self.peak = torch.cuda.max_memory_allocated() - self.before
        self.delta = torch.cuda.memory_allocated() - self.before
        print(f"peak {self.peak / 1e6:.3f} MB, delta {self.delta / 1e6:.3f} MB")

import torch

batch = {
    "features": torch.randn(4, 128, 768),
    "mask": torch.ones(4, 128, dtype=torch.bool),
    "labels": torch.randint(0, 3, (4,)),
}
device = "cuda"
batch = {name: value.to(device) for name, value in batch.items()}
assert all(value.device.type == "cuda" for value in batch.values())

import torch

print(torch.__version__, torch.version.cuda)  # None: a build without CUDA
print(torch.cuda.is_available())

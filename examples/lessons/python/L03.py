import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.arange(6, device=device).reshape(2, 3).float()
y = (x * 2).sum(1)
print(y.tolist())

import torch

x = torch.tensor(numbers, device="cuda")
total = torch.zeros(1, device="cuda")
for row in x:
    total += row.sum()
print(total.item())

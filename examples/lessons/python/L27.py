import torch

model.eval()
with torch.no_grad():
    y = model(x)
    with torch.enable_grad():
        z = model(x.detach().requires_grad_())

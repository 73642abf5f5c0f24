# %% [markdown]
# DDPM flowers 64x64  (colab -> .py)

# %%
import copy
import gc
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torchvision import transforms
from diffusers import UNet2DModel

T = 1000
IMG = 64
DEVICE = "cuda"

betas = torch.linspace(1e-4, 0.02, T, device=DEVICE)
alphas_bar = torch.cumprod(1.0 - betas, 0)
sqrt_ab = alphas_bar.sqrt()
sqrt_1mab = (1 - alphas_bar).sqrt()

# %%
tf = transforms.Compose([
    transforms.Resize((IMG, IMG)),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Lambda(lambda t: t * 2 - 1),
])
ds = torchvision.datasets.Flowers102("data", split="test", download=True, transform=tf)
dl = torch.utils.data.DataLoader(ds, batch_size=64, shuffle=True, drop_last=True, num_workers=2, pin_memory=True)

# %%
net = UNet2DModel(
    sample_size=IMG, in_channels=3, out_channels=3, layers_per_block=2,
    block_out_channels=(64, 128, 256, 256),
    down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
).to(DEVICE)
ema = copy.deepcopy(net).eval().requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=2e-4)


@torch.no_grad()
def update_ema(decay=0.9995):
    for pe, p in zip(ema.parameters(), net.parameters()):
        pe.lerp_(p, 1 - decay)


def q_sample(x0, t, eps):
    return sqrt_ab[t].view(-1, 1, 1, 1) * x0 + sqrt_1mab[t].view(-1, 1, 1, 1) * eps


@torch.no_grad()
def sample(n=16):
    x = torch.randn(n, 3, IMG, IMG, device=DEVICE)
    for i in reversed(range(T)):
        t = torch.full((n,), i, device=DEVICE, dtype=torch.long)
        eps = ema(x, t).sample
        x = (x - betas[i] / sqrt_1mab[i] * eps) / (1 - betas[i]).sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return (x.clamp(-1, 1) + 1) / 2


# %%
step = 0
for epoch in range(300):
    net.train()
    for x0, _ in dl:
        x0 = x0.to(DEVICE, non_blocking=True)
        t = torch.randint(0, T, (x0.shape[0],), dtype=torch.long).to(DEVICE)
        eps = torch.randn_like(x0)
        pred = net(q_sample(x0, t, eps), t).sample
        loss = F.mse_loss(pred, eps)

        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        update_ema()

        # colab keeps dying with OOM so clean up
        torch.cuda.empty_cache()
        if step % 200 == 0:
            print(epoch, step, loss.item())
        step += 1
    if epoch % 10 == 0:
        gc.collect()
        torchvision.utils.save_image(sample(), f"s_{epoch:03d}.png")

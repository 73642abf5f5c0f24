"""A U-Net and a variational auto-encoder as people write them in PyTorch: the reference of model.UNet and model.VAE.

    python pictures_reference.py [--dir model/testdata/pictures]

unet.safetensors, vae.safetensors   weights, what goes in and comes out, and gradients of all weights and of the pictures

All is computed in float64. The names of weights are those of Warpline's models.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

import common
from golden import exact

CHANNELS, BASE, HALVINGS, CLASSES = 2, 3, 2, 4
HIDDEN, CODE = 7, 3


def twice(planes, out):
    return nn.Sequential(nn.Conv2d(planes, out, 3, padding=1, bias=False), nn.BatchNorm2d(out),
                         nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.grow, self.up = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        planes, out = CHANNELS, BASE
        for i in range(HALVINGS + 1):
            self.down.append(twice(planes, out))
            if i < HALVINGS:
                self.grow.append(nn.ConvTranspose2d(2 * out, out, 2, 2))
                self.up.append(twice(2 * out, out))
            planes, out = out, 2 * out
        self.score = nn.Conv2d(BASE, CLASSES, 1)

    def block(self, layers, x):
        conv, norm, conv2, norm2 = layers
        return norm2(conv2(norm(conv(x)).relu())).relu()

    def forward(self, x):
        seen = []
        for i, layers in enumerate(self.down):
            x = self.block(layers, x if i == 0 else F.max_pool2d(x, 2))
            seen.append(x)
        for i in reversed(range(HALVINGS)):
            x = self.block(self.up[i], torch.cat([seen[i], self.grow[i](x)], 1))
        return self.score(x).permute(0, 2, 3, 1)


class VAE(nn.Module):
    """PyTorch's example, with the sizes of small pictures and without the last sigmoid."""

    def __init__(self, pixels):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(pixels, HIDDEN), nn.Linear(HIDDEN, CODE), nn.Linear(HIDDEN, CODE)
        self.fc3, self.fc4 = nn.Linear(CODE, HIDDEN), nn.Linear(HIDDEN, pixels)

    def forward(self, x, noise):
        h = self.fc1(x.flatten(1)).relu()
        mean, logvar = self.fc21(h), self.fc22(h)
        z = mean + (logvar / 2).exp() * noise
        return mean, logvar, self.fc4(self.fc3(z).relu()).reshape(x.shape)


def drawn(model):
    """The model with weights that float32 has, norms' too, so that none is as it begins."""
    for p in model.parameters():
        p.data = exact(torch.randn(p.shape) / 3 + (1 if p.dim() == 1 else 0))
    return model.double()


def save(path, model, tensors, loss, x):
    names, params = zip(*model.named_parameters())
    *grads, own = torch.autograd.grad(loss, [*params, x])
    out = {f"param.{n}": p for n, p in zip(names, params)} | {f"grad.{n}": g for n, g in zip(names, grads)}
    out |= {"x": x, "grad.x": own, "loss": loss} | tensors
    common.save_tensors(path, {n: t.float() if t.is_floating_point() else t for n, t in out.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default=common.ROOT / "model" / "testdata" / "pictures", type=pathlib.Path)
    args = parser.parse_args()
    common.deterministic(17)

    model = drawn(UNet()).train()
    x = exact(torch.randn(2, CHANNELS, 8, 12)).requires_grad_()
    labels = torch.randint(CLASSES, (2, 8, 12))
    y = model(x)
    save(args.dir / "unet.safetensors", model, {"labels": labels, "y": y}, F.cross_entropy(y.reshape(-1, CLASSES), labels.reshape(-1)), x)

    x = exact(torch.rand(3, 1, 5, 4)).requires_grad_()
    model, noise = drawn(VAE(20)), exact(torch.randn(3, CODE))
    mean, logvar, y = model(x, noise)
    reconstruction = F.binary_cross_entropy_with_logits(y, x, reduction="sum") / len(x)
    codes = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum() / len(x)
    save(args.dir / "vae.safetensors", model, {"noise": noise, "mean": mean, "logvar": logvar, "y": y, "reconstruction": reconstruction, "codes": codes},
         reconstruction + codes, x)


if __name__ == "__main__":
    main()

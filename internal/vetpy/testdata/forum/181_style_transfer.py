"""Neural style on 1024px images. dies with OOM at about iteration 140 on a 12 GB card"""
import argparse
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.transforms.functional as TF
from PIL import Image
from torchvision.models import vgg19

STYLE_LAYERS = [1, 6, 11, 20, 29]
CONTENT_LAYER = 22
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def gram(f):
    b, c, h, w = f.shape
    f = f.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.vgg = vgg19(weights="DEFAULT").features[:30].eval()
        for i, m in enumerate(self.vgg):
            if isinstance(m, nn.ReLU):
                self.vgg[i] = nn.ReLU(inplace=False)
        self.vgg.requires_grad_(False)
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1))

    def forward(self, x):
        x = (x - self.mean) / self.std
        style, content = [], None
        for i, m in enumerate(self.vgg):
            x = m(x)
            if i in STYLE_LAYERS:
                style.append(gram(x))
            if i == CONTENT_LAYER:
                content = x
        return style, content


def load(path, size, device):
    img = TF.resize(Image.open(path).convert("RGB"), size)
    return TF.to_tensor(img).unsqueeze(0).to(device)


def tv(x):
    return (x[..., 1:] - x[..., :-1]).abs().mean() + (x[..., 1:, :] - x[..., :-1, :]).abs().mean()


def stylize(content_img, style_img, steps, sw, cw, tvw):
    net = Features().to(content_img.device)
    with torch.no_grad():
        style_ref, _ = net(style_img)
        _, content_ref = net(content_img)
    canvas = content_img.clone().requires_grad_(True)
    opt = torch.optim.Adam([canvas], lr=0.02)
    history = defaultdict(list)

    for it in range(steps):
        opt.zero_grad()
        style, content = net(canvas.clamp(0, 1))
        style_score = sum(F.mse_loss(a, b) for a, b in zip(style, style_ref))
        content_score = F.mse_loss(content, content_ref)
        loss = sw * style_score + cw * content_score + tvw * tv(canvas)
        loss.backward()
        opt.step()
        for name, value in (("style", style_score), ("content", content_score)):
            history[name].append(value)
        if it % 50 == 0:
            print(f"{it:4d} style {style_score.item():.3e} content {content_score.item():.3e}")
    return canvas.detach().clamp(0, 1), history


def main():
    p = argparse.ArgumentParser()
    p.add_argument("content")
    p.add_argument("style")
    p.add_argument("-o", "--out", default="out.png")
    p.add_argument("--size", type=int, default=1024)
    p.add_argument("--steps", type=int, default=600)
    a = p.parse_args()
    dev = torch.device("cuda")
    img, hist = stylize(load(a.content, a.size, dev), load(a.style, a.size, dev), a.steps, 1e6, 1.0, 0.1)
    TF.to_pil_image(img.squeeze(0).cpu()).save(a.out)
    torch.save({k: torch.stack(v).detach().cpu() for k, v in hist.items()}, "history.pt")


if __name__ == "__main__":
    main()

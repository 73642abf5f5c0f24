import argparse

import torch
import torch.nn as nn
from open_clip import create_model_and_transforms
from torch.utils.data import DataLoader
from torchvision import datasets


@torch.no_grad()
def features(backbone, loader, device):
    xs, ys = [], []
    for img, y in loader:
        xs.append(backbone.encode_image(img.to(device, non_blocking=True)).float())
        ys.append(y)
    return torch.cat(xs), torch.cat(ys).to(device)


def fit_probe(x, y, n_classes, epochs=100, bs=4096):
    probe = nn.Linear(x.size(1), n_classes).to(x.device)
    opt = torch.optim.SGD(probe.parameters(), lr=0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        probe.train()
        perm = torch.randperm(len(x), device=x.device)
        for idx in perm.split(bs):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(probe(x[idx]), y[idx])
            loss.backward()
            opt.step()
        sched.step()
        if epoch % 10 == 0:
            print("probe epoch", epoch, "loss", loss.item())
    return probe


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train", default="imagenet100/train")
    p.add_argument("--val", default="imagenet100/val")
    args = p.parse_args()
    device = torch.device("cuda")
    backbone, _, prep = create_model_and_transforms("ViT-B-32", pretrained="laion2b_s34b_b79k")
    backbone = backbone.to(device).eval()
    mk = lambda root: DataLoader(datasets.ImageFolder(root, prep), batch_size=512, num_workers=12, pin_memory=True)
    xt, yt = features(backbone, mk(args.train), device)
    xv, yv = features(backbone, mk(args.val), device)
    probe = fit_probe(xt, yt, 100)
    probe.eval()
    with torch.inference_mode():
        acc = (probe(xv).argmax(1) == yv).float().mean()
    print("top-1", acc.item())


if __name__ == "__main__":
    main()

# Grad-CAM for a folder of X-rays: eval() without no_grad, because the gradients are the result
import argparse
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms
from torchvision.utils import save_image


class GradCAM:
    def __init__(self, model, layer):
        self.model = model
        self.act = None
        layer.register_forward_hook(self._hook)

    def _hook(self, module, inp, out):
        self.act = out

    def __call__(self, x, cls=None):
        logits = self.model(x)
        if cls is None:
            cls = logits.argmax(1)
        score = logits.gather(1, cls.unsqueeze(1)).sum()
        grad, = torch.autograd.grad(score, self.act)
        weights = grad.mean(dim=(2, 3), keepdim=True)
        cam = F.relu((weights * self.act.detach()).sum(1, keepdim=True))
        cam = F.interpolate(cam, size=x.shape[2:], mode="bilinear", align_corners=False)
        self.act = None
        return cam / cam.amax(dim=(2, 3), keepdim=True).clamp(min=1e-8), cls


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--images", required=True)
    ap.add_argument("--weights", required=True)
    ap.add_argument("--out", default="cams")
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    Path(args.out).mkdir(exist_ok=True)

    tf = transforms.Compose([transforms.Resize((320, 320)), transforms.ToTensor(),
                             transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    ds = datasets.ImageFolder(args.images, tf)
    loader = DataLoader(ds, batch_size=32, num_workers=4, pin_memory=True)

    model = models.densenet121()
    model.classifier = nn.Linear(model.classifier.in_features, 14)
    model.load_state_dict(torch.load(args.weights, map_location="cpu"))
    model.to(device).eval()
    cam = GradCAM(model, model.features.norm5)

    n = 0
    for x, _ in loader:
        x = x.to(device, non_blocking=True)
        heat, cls = cam(x)
        grid = torch.cat([x.mean(1, keepdim=True), heat], dim=3).cpu()     # one copy a batch, to be written
        for img, c in zip(grid, cls.tolist()):
            save_image(img, f"{args.out}/{n:06d}_{c}.png", normalize=True)
            n += 1
    print(n, "maps written to", args.out)


if __name__ == "__main__":
    main()

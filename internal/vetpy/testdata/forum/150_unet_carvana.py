import argparse
import logging
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset, random_split


class CarvanaSet(Dataset):
    def __init__(self, images_dir, mask_dir, scale=0.5):
        self.images_dir, self.mask_dir, self.scale = Path(images_dir), Path(mask_dir), scale
        self.ids = sorted(p.stem for p in self.images_dir.glob("*.jpg"))

    def __len__(self):
        return len(self.ids)

    def _load(self, path, resample):
        im = Image.open(path)
        w, h = im.size
        return im.resize((int(w * self.scale), int(h * self.scale)), resample)

    def __getitem__(self, i):
        name = self.ids[i]
        img = np.asarray(self._load(self.images_dir / f"{name}.jpg", Image.BICUBIC), dtype=np.float32) / 255.0
        msk = np.asarray(self._load(self.mask_dir / f"{name}_mask.gif", Image.NEAREST), dtype=np.int64)
        return torch.from_numpy(img.transpose(2, 0, 1).copy()), torch.from_numpy(msk.copy())


def conv(ci, co):
    return nn.Sequential(nn.Conv2d(ci, co, 3, padding=1), nn.BatchNorm2d(co), nn.ReLU(True),
                         nn.Conv2d(co, co, 3, padding=1), nn.BatchNorm2d(co), nn.ReLU(True))


class UNet(nn.Module):
    def __init__(self, n_classes=2, w=32):
        super().__init__()
        self.d1, self.d2, self.d3 = conv(3, w), conv(w, 2 * w), conv(2 * w, 4 * w)
        self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.u2 = conv(4 * w, 2 * w)
        self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.u1 = conv(2 * w, w)
        self.out = nn.Conv2d(w, n_classes, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([b, self.up2(c)], 1))
        a = self.u1(torch.cat([a, self.up1(b)], 1))
        return self.out(a)


@torch.inference_mode()
def evaluate(net, loader, device, amp):
    net.eval()
    inter = union = 0
    with torch.autocast(device.type, enabled=amp):
        for img, msk in loader:
            img, msk = img.to(device, non_blocking=True), msk.to(device, non_blocking=True)
            pred = net(img).argmax(1)
            inter = inter + ((pred == 1) & (msk == 1)).sum()
            union = union + (pred == 1).sum() + (msk == 1).sum()
    return (2 * inter / union.clamp(min=1)).item()


def train_model(net, device, args):
    data = CarvanaSet(args.images, args.masks, args.scale)
    n_val = int(len(data) * 0.1)
    train_set, val_set = random_split(data, [len(data) - n_val, n_val], generator=torch.Generator().manual_seed(0))
    kw = dict(batch_size=args.batch_size, num_workers=8, pin_memory=True)
    train_loader = DataLoader(train_set, shuffle=True, **kw)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **kw)

    optimizer = torch.optim.RMSprop(net.parameters(), lr=args.lr, weight_decay=1e-8, momentum=0.999, foreach=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
    grad_scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    criterion = nn.CrossEntropyLoss()
    global_step = 0
    division_step = max(1, len(train_set) // (5 * args.batch_size))

    for epoch in range(1, args.epochs + 1):
        net.train()
        for images, true_masks in train_loader:
            images = images.to(device, non_blocking=True)
            true_masks = true_masks.to(device, non_blocking=True)
            with torch.autocast(device.type, enabled=args.amp):
                loss = criterion(net(images), true_masks)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            global_step += 1

            # evaluation round, five times per epoch
            if global_step % division_step == 0:
                val_score = evaluate(net, val_loader, device, args.amp)
                scheduler.step(val_score)
                logging.info("step %d  loss %.4f  dice %.4f", global_step, loss.item(), val_score)
        torch.save(net.state_dict(), f"checkpoint_epoch{epoch}.pth")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--images", default="data/imgs")
    ap.add_argument("--masks", default="data/masks")
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch-size", type=int, default=4)
    ap.add_argument("--lr", type=float, default=1e-5)
    ap.add_argument("--scale", type=float, default=0.5)
    ap.add_argument("--amp", action="store_true")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    dev = torch.device("cuda")
    train_model(UNet().to(dev), dev, args)

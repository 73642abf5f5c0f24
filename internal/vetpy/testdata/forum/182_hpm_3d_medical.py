"""
3D U-Net on BTCV abdominal CT with MONAI transforms, mixed precision.
Without amp it learns, with amp the loss stays at 1.93 forever.
"""
import glob
import os

import torch
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (AsDiscrete, Compose, CropForegroundd, EnsureChannelFirstd, LoadImaged, Orientationd,
                              RandCropByPosNegLabeld, RandFlipd, ScaleIntensityRanged, Spacingd)

ROI = (96, 96, 96)
N_CLS = 14
device = torch.device("cuda")


def files(split):
    imgs = sorted(glob.glob(f"btcv/{split}/img/*.nii.gz"))
    return [{"image": i, "label": i.replace("/img/img", "/label/label")} for i in imgs]


def transforms(train):
    keys = ["image", "label"]
    t = [
        LoadImaged(keys), EnsureChannelFirstd(keys), Orientationd(keys, axcodes="RAS"),
        Spacingd(keys, pixdim=(1.5, 1.5, 2.0), mode=("bilinear", "nearest")),
        ScaleIntensityRanged("image", -175, 250, 0.0, 1.0, clip=True),
        CropForegroundd(keys, source_key="image"),
    ]
    if train:
        t += [RandCropByPosNegLabeld(keys, "label", ROI, pos=1, neg=1, num_samples=2, image_key="image"),
              RandFlipd(keys, prob=0.2, spatial_axis=0)]
    return Compose(t)


train_loader = DataLoader(CacheDataset(files("train"), transforms(True), cache_rate=1.0, num_workers=8), batch_size=1,
                          shuffle=True, num_workers=8, pin_memory=True)
val_loader = DataLoader(CacheDataset(files("val"), transforms(False), cache_rate=1.0, num_workers=4), batch_size=1,
                        num_workers=4, pin_memory=True)

model = UNet(spatial_dims=3, in_channels=1, out_channels=N_CLS, channels=(32, 64, 128, 256, 512),
             strides=(2, 2, 2, 2), num_res_units=2).to(device)
loss_fn = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-5)
scaler = torch.cuda.amp.GradScaler()
dice = DiceMetric(include_background=False, reduction="mean")
post_pred = AsDiscrete(argmax=True, to_onehot=N_CLS)
post_lab = AsDiscrete(to_onehot=N_CLS)


def validation():
    model.eval()
    with torch.no_grad():
        for batch in val_loader:
            x, y = batch["image"].to(device, non_blocking=True), batch["label"].to(device, non_blocking=True)
            out = sliding_window_inference(x, ROI, 4, model)
            dice([post_pred(o) for o in decollate_batch(out)], [post_lab(t) for t in decollate_batch(y)])
    score = dice.aggregate().item()
    dice.reset()
    return score


best = 0.0
for epoch in range(600):
    model.train()
    epoch_loss = torch.zeros((), device=device)
    for batch in train_loader:
        x = batch["image"].to(device, non_blocking=True)
        y = batch["label"].to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = loss_fn(model(x), y)
        loss.backward()
        scaler.step(optimizer)
        scaler.update()
        epoch_loss += loss.detach()
    print(f"epoch {epoch} loss {epoch_loss.item() / len(train_loader):.4f}")
    if epoch % 20 == 19:
        d = validation()
        print(f"   val dice {d:.4f} (best {best:.4f})")
        if d > best:
            best = d
            torch.save(model.state_dict(), os.path.join("runs", "best_dice.pth"))

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
import segmentation_models_pytorch as smp

from mydata import CellDataset

model = smp.Unet("resnet34", classes=1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
train_loader = DataLoader(CellDataset("train"), batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
val_loader = DataLoader(CellDataset("val"), batch_size=8, num_workers=4, pin_memory=True)


def dice(pred, target, eps=1e-6):
    pred = pred.sigmoid()
    inter = (pred * target).sum()
    return (2 * inter + eps) / (pred.sum() + target.sum() + eps)


best = 0
for epoch in range(50):
    model.train()
    for images, masks in train_loader:
        images = images.cuda()
        masks = masks.cuda()
        logits = model(images)
        loss = F.binary_cross_entropy_with_logits(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    scores = []
    for images, masks in val_loader:
        images = images.cuda()
        masks = masks.cuda()
        logits = model(images)
        scores.append(dice(logits, masks))
    score = torch.stack(scores).mean().item()
    if score > best:
        best = score
        torch.save(model.state_dict(), "best.pth")
    print(f"epoch {epoch} dice {score:.4f}")

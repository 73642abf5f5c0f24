"""Fine-tune Faster R-CNN on our parking-lot images."""
import json
import math
import os
import sys

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection import fasterrcnn_resnet50_fpn
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.transforms import functional as TF

NUM_CLASSES = 4  # bg, car, van, truck


class ParkingDataset(Dataset):
    def __init__(self, root, ann_file):
        self.root = root
        with open(ann_file) as f:
            self.items = json.load(f)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        it = self.items[idx]
        img = TF.to_tensor(Image.open(os.path.join(self.root, it["file"])).convert("RGB"))
        target = {"boxes": torch.tensor(it["boxes"], dtype=torch.float32),
                  "labels": torch.tensor(it["labels"], dtype=torch.int64),
                  "image_id": torch.tensor([idx])}
        return img, target


def collate_fn(batch):
    return tuple(zip(*batch))


def get_model():
    model = fasterrcnn_resnet50_fpn(weights="DEFAULT")
    in_features = model.roi_heads.box_predictor.cls_score.in_features
    model.roi_heads.box_predictor = FastRCNNPredictor(in_features, NUM_CLASSES)
    return model


def train_one_epoch(model, optimizer, loader, device, epoch, scaler, print_freq=20):
    model.train()
    for i, (images, targets) in enumerate(loader):
        images = [img.to(device, non_blocking=True) for img in images]
        targets = [{k: v.to(device, non_blocking=True) for k, v in t.items()} for t in targets]

        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())
            scaler.scale(losses).backward()
        scaler.step(optimizer)
        scaler.update()

        if i % print_freq == 0:
            value = losses.item()
            if not math.isfinite(value):
                print("Loss is {}, stopping training".format(value))
                sys.exit(1)
            print("epoch {} [{}/{}] loss {:.4f}".format(epoch, i, len(loader), value))


@torch.inference_mode()
def predict(model, loader, device, thresh=0.5):
    model.eval()
    results = []
    for images, targets in loader:
        outputs = model([img.to(device, non_blocking=True) for img in images])
        for out, t in zip(outputs, targets):
            keep = out["scores"] > thresh
            results.append((t["image_id"], out["boxes"][keep], out["labels"][keep]))
    return results


def main():
    device = torch.device("cuda")
    train_set = ParkingDataset("images/train", "train.json")
    test_set = ParkingDataset("images/test", "test.json")
    train_loader = DataLoader(train_set, batch_size=4, shuffle=True, num_workers=4,
                              pin_memory=True, collate_fn=collate_fn)
    test_loader = DataLoader(test_set, batch_size=4, num_workers=4, pin_memory=True, collate_fn=collate_fn)

    model = get_model().to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=0.0005)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
    scaler = torch.amp.GradScaler("cuda")

    for epoch in range(10):
        train_one_epoch(model, optimizer, train_loader, device, epoch, scaler)
        lr_scheduler.step()
        n_det = sum(len(boxes) for _, boxes, _ in predict(model, test_loader, device))
        print("epoch", epoch, "detections on test:", n_det)
        torch.save(model.state_dict(), "parking_frcnn.pth")


if __name__ == "__main__":
    main()

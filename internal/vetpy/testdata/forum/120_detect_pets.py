import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor

from pets import PetBoxes


def collate(batch):
    return tuple(zip(*batch))


def build(n):
    m = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights="DEFAULT")
    m.roi_heads.box_predictor = FastRCNNPredictor(m.roi_heads.box_predictor.cls_score.in_features, n)
    return m


device = torch.device("cuda:0")
model = build(38).to(device)
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[6, 9], gamma=0.1)
loader = DataLoader(PetBoxes("pets", train=True), batch_size=4, shuffle=True, num_workers=4, collate_fn=collate,
                    pin_memory=True)
epoch_losses = {}

for epoch in range(10):
    model.train()
    epoch_losses[epoch] = []
    for images, targets in loader:
        images = [img.to(device, non_blocking=True) for img in images]
        targets = [{"boxes": t["boxes"].to(device, non_blocking=True), "labels": t["labels"]} for t in targets]
        loss_dict = model(images, targets)
        loss = sum(loss_dict.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_losses[epoch].append(loss_dict)
    sched.step()
    mean = torch.stack([sum(d.values()).detach() for d in epoch_losses[epoch]]).mean()
    print(epoch, mean.item())
    torch.save(model.state_dict(), f"frcnn_{epoch}.pth")

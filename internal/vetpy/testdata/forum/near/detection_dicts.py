import torch
from torch.utils.data import DataLoader
from torchvision.models.detection import fasterrcnn_resnet50_fpn
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor

from pennfudan import PennFudanDataset, get_transform


def collate_fn(batch):
    return tuple(zip(*batch))


def to_device(images, targets, device):
    images = [im.to(device, non_blocking=True) for im in images]
    targets = [{k: v.to(device, non_blocking=True) for k, v in t.items()} for t in targets]
    return images, targets


def build(n):
    net = fasterrcnn_resnet50_fpn(weights="DEFAULT")
    net.roi_heads.box_predictor = FastRCNNPredictor(net.roi_heads.box_predictor.cls_score.in_features, n)
    return net


def train_one_epoch(model, opt, loader, device, epoch, print_freq=20):
    model.train()
    warm = None
    if epoch == 0:
        warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=1e-3, total_iters=min(1000, len(loader) - 1))
    for i, (images, targets) in enumerate(loader):
        images, targets = to_device(images, targets, device)
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        opt.zero_grad()
        losses.backward()
        opt.step()
        if warm is not None:
            warm.step()
        if i % print_freq == 0:
            print(epoch, i, {k: round(v.item(), 3) for k, v in loss_dict.items()})


@torch.inference_mode()
def predict(model, loader, device):
    model.eval()
    results = []
    for images, _ in loader:
        images = [im.to(device, non_blocking=True) for im in images]
        results.extend(model(images))
    return [{k: v.cpu() for k, v in r.items()} for r in results]


def main():
    device = torch.device("cuda")
    train_dl = DataLoader(PennFudanDataset("data", get_transform(True)), batch_size=2, shuffle=True,
                          collate_fn=collate_fn, num_workers=4, pin_memory=True)
    test_dl = DataLoader(PennFudanDataset("data", get_transform(False)), batch_size=1, collate_fn=collate_fn,
                         num_workers=4, pin_memory=True)
    model = build(2).to(device)
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=3, gamma=0.1)
    for epoch in range(10):
        train_one_epoch(model, opt, train_dl, device, epoch)
        sched.step()
    torch.save(predict(model, test_dl, device), "dets.pt")


if __name__ == "__main__":
    main()

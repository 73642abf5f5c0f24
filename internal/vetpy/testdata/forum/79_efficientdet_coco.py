import argparse
import datetime
import os

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms

from backbone import EfficientDetBackbone
from efficientdet.dataset import Augmenter, CocoDataset, Normalizer, Resizer, collater
from efficientdet.loss import FocalLoss


def get_args():
    parser = argparse.ArgumentParser("EfficientDet")
    parser.add_argument("-c", "--compound_coef", type=int, default=0)
    parser.add_argument("--num_gpus", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=12)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--num_epochs", type=int, default=500)
    parser.add_argument("--saved_path", default="logs/")
    return parser.parse_args()


class ModelWithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.criterion = FocalLoss()
        self.model = model

    def forward(self, imgs, annotations):
        _, regression, classification, anchors = self.model(imgs)
        return self.criterion(classification, regression, anchors, annotations)


def train(opt):
    torch.manual_seed(123)
    training_set = CocoDataset(root_dir="datasets/coco", set="train2017",
                               transform=transforms.Compose([Normalizer(), Augmenter(), Resizer(512)]))
    training_generator = DataLoader(training_set, batch_size=opt.batch_size, shuffle=True, drop_last=True,
                                    collate_fn=collater, num_workers=12, pin_memory=True)
    model = ModelWithLoss(EfficientDetBackbone(num_classes=80, compound_coef=opt.compound_coef)).cuda()
    if opt.num_gpus > 1:
        model = nn.DataParallel(model)

    optimizer = torch.optim.AdamW(model.parameters(), opt.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
    step = 0
    for epoch in range(opt.num_epochs):
        model.train()
        epoch_loss = []
        for data in training_generator:
            imgs = data["img"].cuda(non_blocking=True)
            annot = data["annot"].cuda(non_blocking=True)
            optimizer.zero_grad()
            cls_loss, reg_loss = model(imgs, annot)
            loss = cls_loss.mean() + reg_loss.mean()
            loss.backward()
            optimizer.step()
            epoch_loss.append(loss.item())
            step += 1
        mean_loss = sum(epoch_loss) / len(epoch_loss)
        scheduler.step(mean_loss)
        print(datetime.datetime.now(), "epoch", epoch, "loss", mean_loss)
        torch.save(model.module.model.state_dict() if opt.num_gpus > 1 else model.model.state_dict(),
                   os.path.join(opt.saved_path, f"d{opt.compound_coef}_{epoch}_{step}.pth"))


if __name__ == "__main__":
    train(get_args())

import argparse
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from dataset.cityscapes import Cityscapes
from model.deeplab import DeepLab


class AD_Trainer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.num_classes = args.num_classes
        self.G = DeepLab(num_classes=args.num_classes)
        self.freq = np.load(os.path.join(args.data, "class_freq.npy"))

    def weights(self):
        w = 1.0 / np.log(1.02 + self.freq)
        return torch.from_numpy(w / w.mean()).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="/data/cityscapes")
    parser.add_argument("--num_classes", type=int, default=19)
    parser.add_argument("--lr", type=float, default=2.5e-4)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--bs", type=int, default=4)
    args = parser.parse_args()

    device = torch.device("cuda")
    trainer = AD_Trainer(args).to(device)
    class_weight = trainer.weights()
    optimizer = torch.optim.SGD(trainer.G.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=args.epochs, power=0.9)
    trainloader = DataLoader(Cityscapes(args.data, "train", crop=(512, 1024)), batch_size=args.bs, shuffle=True,
                             num_workers=6, pin_memory=True, drop_last=True)

    for epoch in range(args.epochs):
        trainer.train()
        total = torch.zeros((), device=device)
        for i, (images, labels) in enumerate(trainloader):
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True).long()
            criterion = nn.CrossEntropyLoss(weight=class_weight.to(device), ignore_index=255)
            pred = trainer.G(images)
            loss = criterion(pred, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        scheduler.step()
        print("epoch", epoch, "loss", total.item() / len(trainloader))
        torch.save(trainer.G.state_dict(), "snapshots/GTA5_%d.pth" % epoch)


if __name__ == "__main__":
    main()

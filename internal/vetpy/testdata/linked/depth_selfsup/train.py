"""Self-supervised monocular depth (monodepth2 style, stripped down).

    python train.py --data /data/kitti_raw --epochs 20
"""
import argparse
import logging

import torch
from torch.utils.data import DataLoader

from engine import DepthPose, save, train_step, validate
from kitti_triplets import KittiTriplets

LOG = logging.getLogger("depth")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--workers", type=int, default=12)
    cfg = parser.parse_args()
    logging.basicConfig(level=logging.INFO)

    device = torch.device("cuda")
    train_dl = DataLoader(KittiTriplets(cfg.data, "train"), cfg.batch, shuffle=True, drop_last=True,
                          num_workers=cfg.workers, pin_memory=True)
    val_dl = DataLoader(KittiTriplets(cfg.data, "val"), cfg.batch, num_workers=cfg.workers, pin_memory=True)

    net = DepthPose().to(device)
    optim = torch.optim.Adam(net.parameters(), cfg.lr)
    sched = torch.optim.lr_scheduler.StepLR(optim, 15, 0.1)

    for epoch in range(cfg.epochs):
        net.train()
        epoch_loss = 0.0
        for batch in train_dl:
            epoch_loss += train_step(net, optim, batch, device)  # want: R06
        sched.step()
        LOG.info("epoch %d  train %.5f", epoch, float(epoch_loss) / len(train_dl))
        LOG.info("epoch %d  val   %.5f", epoch, validate(net, val_dl, device))
        save(net, optim, epoch)


if __name__ == "__main__":
    main()

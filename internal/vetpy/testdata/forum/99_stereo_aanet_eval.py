import argparse
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import nets
from dataloader import StereoDataset, transforms


def train_one_epoch(aanet, loader, optimizer, epoch, print_freq=100):
    aanet.train()
    for i, sample in enumerate(loader):
        left = sample["left"].cuda(non_blocking=True)
        right = sample["right"].cuda(non_blocking=True)
        gt = sample["disp"].cuda(non_blocking=True)
        mask = (gt > 0) & (gt < 192)
        pyramid = aanet(left, right)
        loss = sum(w * F.smooth_l1_loss(p[mask], gt[mask]) for w, p in zip((1 / 3, 2 / 3, 1.0), pyramid))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % print_freq == 0:
            print("epoch %d [%d/%d] loss %.3f" % (epoch, i, len(loader), loss.item()))


def measure(aanet, loader):
    aanet.eval()
    inference_time, num_imgs = 0.0, 0
    epe = torch.zeros((), device="cuda")
    for sample in loader:
        left = sample["left"].cuda(non_blocking=True)
        right = sample["right"].cuda(non_blocking=True)
        gt = sample["disp"].cuda(non_blocking=True)
        with torch.no_grad():
            time_start = time.perf_counter()
            pred_disp = aanet(left, right)[-1]
            inference_time += time.perf_counter() - time_start
        epe += (pred_disp - gt).abs().mean()
        num_imgs += left.size(0)
    print("=> Mean inference time for %d images: %.3fs" % (num_imgs, inference_time / num_imgs))
    return epe.item() / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", default="data/SceneFlow")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--max_epoch", type=int, default=64)
    args = parser.parse_args()

    tf = transforms.Compose([transforms.RandomColor(), transforms.ToTensor(), transforms.Normalize()])
    train_loader = DataLoader(StereoDataset(args.data_dir, mode="train", transform=tf), batch_size=8, shuffle=True,
                              num_workers=8, pin_memory=True, drop_last=True)
    test_loader = DataLoader(StereoDataset(args.data_dir, mode="test", transform=tf), batch_size=1,
                             num_workers=4, pin_memory=True)
    aanet = nets.AANet(max_disp=192).cuda()
    optimizer = torch.optim.Adam(aanet.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[20, 30, 40, 50, 60], gamma=0.5)
    for epoch in range(args.max_epoch):
        train_one_epoch(aanet, train_loader, optimizer, epoch)
        sched.step()
        print("EPE", measure(aanet, test_loader))


if __name__ == "__main__":
    main()

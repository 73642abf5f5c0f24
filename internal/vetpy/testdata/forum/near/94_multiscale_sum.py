"""Optical flow: the total loss is summed over pyramid levels and GRU iterations, with its graph,
because it is backpropagated once at the end of the step."""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from chairs import FlyingChairs
from raft_small import RAFT


def sequence_loss(preds, flow, valid, gamma=0.8):
    total = 0.0
    for i, pred in enumerate(preds):
        weight = gamma ** (len(preds) - i - 1)
        total += weight * (valid[:, None] * (pred - flow).abs()).mean()
    return total


def smoothness(flow):
    loss = 0
    for _ in range(3):
        loss = loss + (flow[..., 1:] - flow[..., :-1]).abs().mean()
        flow = F.avg_pool2d(flow, 2)
    return loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--iters", type=int, default=12)
    ap.add_argument("--lr", type=float, default=4e-4)
    args = ap.parse_args()

    device = torch.device("cuda")
    loader = DataLoader(FlyingChairs("train"), batch_size=10, shuffle=True, num_workers=8,
                        pin_memory=True, drop_last=True)
    model = RAFT().to(device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.steps + 100)

    step = 0
    running = torch.zeros((), device=device)
    while step < args.steps:
        for img1, img2, flow, valid in loader:
            img1 = img1.to(device, non_blocking=True)
            img2 = img2.to(device, non_blocking=True)
            flow = flow.to(device, non_blocking=True)
            valid = valid.to(device, non_blocking=True)
            preds = model(img1, img2, iters=args.iters)
            loss = sequence_loss(preds, flow, valid)
            loss += 0.01 * smoothness(preds[-1])

            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()

            running += loss.detach()
            step += 1
            if step % 100 == 0:
                print("step %d loss %.4f" % (step, running.item() / 100))
                running.zero_()
            if step == args.steps:
                break
    torch.save(model.state_dict(), "raft.pth")


if __name__ == "__main__":
    main()

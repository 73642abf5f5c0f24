import argparse

import numpy as np
import torch
import torch.nn as nn
from tqdm import tqdm

from data_loader import get_dataloaders
from model import DualTalkModel


def trainer(args, train_loader, dev_loader, model, optimizer, criterion, epoch=100):
    device = torch.device(args.device)
    best = float("inf")
    for e in range(epoch + 1):
        model.train()
        loss_sum = torch.zeros((), device=device)
        pbar = tqdm(train_loader, total=len(train_loader))
        for i, (audio1, audio2, blendshape1, blendshape2) in enumerate(pbar):
            audio1 = audio1.to(device, non_blocking=True)
            audio2 = audio2.to(device, non_blocking=True)
            blendshape1 = blendshape1.to(device, non_blocking=True)
            blendshape2 = blendshape2.to(device, non_blocking=True)
            out = model(audio1, audio2, blendshape2)
            loss = criterion(out, blendshape1) / args.gradient_accumulation_steps
            optimizer.zero_grad()
            loss.backward()
            loss_sum += loss.detach()
            if (i + 1) % args.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

        model.eval()
        valid = torch.zeros((), device=device)
        with torch.no_grad():
            for audio1, audio2, bs1, bs2 in dev_loader:
                audio1, audio2 = audio1.to(device, non_blocking=True), audio2.to(device, non_blocking=True)
                bs1, bs2 = bs1.to(device, non_blocking=True), bs2.to(device, non_blocking=True)
                valid += criterion(model(audio1, audio2, bs2), bs1)
        current = valid.item() / len(dev_loader)
        print("epoch: {}, train {:.5f}, val {:.5f}".format(e, loss_sum.item() / len(train_loader), current))
        if current < best:
            best = current
            torch.save(model.state_dict(), args.save_path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--max_epoch", type=int, default=100)
    parser.add_argument("--device", type=str, default="cuda")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=8)
    parser.add_argument("--save_path", type=str, default="save/best.pth")
    args = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    model = DualTalkModel(args).to(args.device)
    loaders = get_dataloaders(args, num_workers=4, pin_memory=True)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    trainer(args, loaders["train"], loaders["valid"], model, optimizer, nn.MSELoss(), epoch=args.max_epoch)


if __name__ == "__main__":
    main()

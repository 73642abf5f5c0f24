import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from talk_data import TalkDataset, pad_collate


class AudioToFace(nn.Module):
    """wav2vec features (B,T,768) -> FLAME coefficients (B,T,56)"""

    def __init__(self, feat=768, hid=256, out=56, layers=4):
        super().__init__()
        self.proj = nn.Linear(feat, hid)
        layer = nn.TransformerEncoderLayer(hid, 4, 2 * hid, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(hid, out)

    def forward(self, audio, mask):
        return self.head(self.enc(self.proj(audio), src_key_padding_mask=~mask))


def masked_mse(pred, target, mask):
    err = (pred - target).pow(2).mean(-1)
    return (err * mask).sum() / mask.sum()


def velocity(pred, target, mask):
    return masked_mse(pred.diff(dim=1), target.diff(dim=1), mask[:, 1:])


def trainer(args, train_loader, dev_loader, model, optimizer):
    best = float("inf")
    for e in range(args.max_epoch):
        model.train()
        loss_log = torch.zeros((), device=args.device)
        for i, (audio, coeff, mask) in enumerate(train_loader):
            audio = audio.to(args.device, non_blocking=True)
            coeff = coeff.to(args.device, non_blocking=True)
            mask = mask.to(args.device, non_blocking=True)
            pred = model(audio, mask)
            loss = masked_mse(pred, coeff, mask) + 0.5 * velocity(pred, coeff, mask)

            optimizer.zero_grad()
            (loss / args.gradient_accumulation_steps).backward()
            loss_log += loss.detach()
            if (i + 1) % args.gradient_accumulation_steps == 0:
                optimizer.step()

        model.eval()
        dev = torch.zeros((), device=args.device)
        with torch.no_grad():
            for audio, coeff, mask in dev_loader:
                audio = audio.to(args.device, non_blocking=True)
                coeff = coeff.to(args.device, non_blocking=True)
                mask = mask.to(args.device, non_blocking=True)
                dev += masked_mse(model(audio, mask), coeff, mask)
        dev_loss = dev.item() / len(dev_loader)
        print("epoch {} train {:.6f} dev {:.6f}".format(e, loss_log.item() / len(train_loader), dev_loss))
        if dev_loss < best:
            best = dev_loss
            torch.save(model.state_dict(), os.path.join(args.save_path, "best.pth"))


def main():
    parser = argparse.ArgumentParser(description="talking face")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=8)
    parser.add_argument("--max_epoch", type=int, default=100)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--save_path", default="save")
    args = parser.parse_args()
    os.makedirs(args.save_path, exist_ok=True)
    train = DataLoader(TalkDataset("train"), 2, shuffle=True, collate_fn=pad_collate, num_workers=4, pin_memory=True)
    dev = DataLoader(TalkDataset("dev"), 2, collate_fn=pad_collate, num_workers=4, pin_memory=True)
    model = AudioToFace().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    trainer(args, train, dev, model, optimizer)


if __name__ == "__main__":
    main()

"""Long-term forecasting experiment (ETTh1) with a vanilla transformer."""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data_factory import EttDataset


class PositionalEmbedding(nn.Module):
    def __init__(self, d_model, max_len=5000):
        super(PositionalEmbedding, self).__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).float().unsqueeze(1)
        div_term = (torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model)).exp()
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.pe = pe.unsqueeze(0)

    def forward(self, x):
        return x + self.pe[:, :x.size(1)]


class Model(nn.Module):
    def __init__(self, cfg):
        super(Model, self).__init__()
        self.pred_len = cfg.pred_len
        self.value = nn.Linear(cfg.enc_in, cfg.d_model)
        self.pos = PositionalEmbedding(cfg.d_model)
        layer = nn.TransformerEncoderLayer(cfg.d_model, cfg.n_heads, 4 * cfg.d_model, cfg.dropout,
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, cfg.e_layers)
        self.time_proj = nn.Linear(cfg.seq_len, cfg.pred_len)
        self.out = nn.Linear(cfg.d_model, cfg.enc_in)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = x.std(1, keepdim=True) + 1e-5
        h = self.encoder(self.pos(self.value((x - mean) / std)))
        h = self.time_proj(h.transpose(1, 2)).transpose(1, 2)
        return self.out(h) * std + mean


class Exp:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda:{}".format(args.gpu))
        self.model = Model(args).float().to(self.device)

    def _get_loader(self, flag):
        ds = EttDataset(self.args.root_path, flag, self.args.seq_len, self.args.pred_len)
        return DataLoader(ds, batch_size=self.args.batch_size, shuffle=flag == "train",
                          num_workers=4, pin_memory=True, drop_last=True)

    def vali(self, loader, criterion):
        self.model.eval()
        losses = []
        with torch.no_grad():
            for x, y in loader:
                x = x.float().to(self.device, non_blocking=True)
                y = y.float().to(self.device, non_blocking=True)
                losses.append(criterion(self.model(x), y))
        self.model.train()
        return torch.stack(losses).mean().item()

    def train(self, setting):
        train_loader, vali_loader = self._get_loader("train"), self._get_loader("val")
        optim = torch.optim.Adam(self.model.parameters(), lr=self.args.learning_rate)
        criterion = nn.MSELoss()
        scaler = torch.cuda.amp.GradScaler()
        best = np.inf
        for epoch in range(self.args.train_epochs):
            self.model.train()
            for i, (x, y) in enumerate(train_loader):
                optim.zero_grad()
                x = x.float().to(self.device, non_blocking=True)
                y = y.float().to(self.device, non_blocking=True)
                with torch.cuda.amp.autocast():
                    loss = criterion(self.model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optim)
                scaler.update()
                if (i + 1) % 100 == 0:
                    print("\titers: {0}, epoch: {1} | loss: {2:.7f}".format(i + 1, epoch + 1, loss.item()))
            vali_loss = self.vali(vali_loader, criterion)
            print("Epoch: {0} | Vali Loss: {1:.7f}".format(epoch + 1, vali_loss))
            if vali_loss < best:
                best = vali_loss
                torch.save(self.model.state_dict(), os.path.join("checkpoints", setting + ".pth"))


if __name__ == "__main__":
    p = argparse.ArgumentParser(description="TimeSeries")
    p.add_argument("--root_path", default="./dataset/ETT-small/")
    p.add_argument("--seq_len", type=int, default=96)
    p.add_argument("--pred_len", type=int, default=96)
    p.add_argument("--enc_in", type=int, default=7)
    p.add_argument("--d_model", type=int, default=256)
    p.add_argument("--n_heads", type=int, default=8)
    p.add_argument("--e_layers", type=int, default=2)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--batch_size", type=int, default=32)
    p.add_argument("--learning_rate", type=float, default=1e-4)
    p.add_argument("--train_epochs", type=int, default=10)
    p.add_argument("--gpu", type=int, default=0)
    args = p.parse_args()
    os.makedirs("checkpoints", exist_ok=True)
    Exp(args).train("ETTh1_%d_%d" % (args.seq_len, args.pred_len))

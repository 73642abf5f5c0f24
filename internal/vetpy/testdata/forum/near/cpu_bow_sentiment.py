import argparse
import random
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from reviews import build_vocab, load_reviews


class BoW(nn.Module):
    def __init__(self, v, d=64, c=2):
        super().__init__()
        self.emb = nn.EmbeddingBag(v, d, mode="mean")
        self.fc = nn.Linear(d, c)

    def forward(self, tokens, offsets):
        return self.fc(self.emb(tokens, offsets))


def collate(rows):
    toks = [t for t, _ in rows]
    offsets = torch.tensor([0] + [len(t) for t in toks[:-1]]).cumsum(0)
    return torch.cat(toks), offsets, torch.tensor([y for _, y in rows])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="reviews.tsv")
    ap.add_argument("--epochs", type=int, default=8)
    args = ap.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(8)

    rows = load_reviews(args.data)
    vocab = build_vocab(rows)
    data = [(torch.tensor(vocab.encode(text)), y) for text, y in rows]
    random.shuffle(data)
    cut = int(0.9 * len(data))
    train_dl = DataLoader(data[:cut], batch_size=64, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(data[cut:], batch_size=256, collate_fn=collate)

    model = BoW(len(vocab))
    opt = torch.optim.SGD(model.parameters(), lr=2.0)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.8)
    crit = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        start, total = time.time(), 0.0
        for toks, offs, y in train_dl:
            opt.zero_grad()
            loss = crit(model(toks, offs), y)
            loss.backward()
            opt.step()
            total += loss.item()
        sched.step()
        took = time.time() - start

        model.eval()
        right = 0
        with torch.no_grad():
            for toks, offs, y in val_dl:
                right += (model(toks, offs).argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {total / len(train_dl):.4f} acc {right / (len(data) - cut):.4f} ({took:.1f}s)")


if __name__ == "__main__":
    main()

"""AG-news classification with a small BiLSTM.

python 01_news_bilstm.py --data ./ag_news.pt --epochs 5
"""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class BiLSTMClassifier(nn.Module):
    def __init__(self, vocab_size, emb_dim=128, hidden=256, n_classes=4):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, emb_dim, padding_idx=0)
        self.lstm = nn.LSTM(emb_dim, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * hidden, n_classes)

    def forward(self, ids, mask):
        emb = self.emb(ids) * mask.unsqueeze(-1)
        out, _ = self.lstm(emb)
        pooled = out.max(dim=1).values
        return self.fc(self.drop(pooled))


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="./ag_news.pt")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def load_split(path, split):
    blob = torch.load(path)[split]
    return TensorDataset(blob["ids"], blob["mask"].float(), blob["labels"])


def main():
    args = parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set = load_split(args.data, "train")
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True,
                              num_workers=2, pin_memory=True)

    model = BiLSTMClassifier(vocab_size=30000).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        model.train()
        running_loss = 0.0
        n_batches = 0
        for ids, mask, labels in train_loader:
            ids = ids.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            logits = model(ids, mask)
            loss = criterion(logits, labels)
            loss.backward()
            optimizer.step()

            running_loss += loss
            n_batches += 1

        print(f"epoch {epoch + 1}: train loss {running_loss / n_batches:.4f}")

    torch.save(model.state_dict(), "bilstm.pt")


if __name__ == "__main__":
    main()

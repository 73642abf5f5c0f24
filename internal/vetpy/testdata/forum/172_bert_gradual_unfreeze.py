"""Sentiment on German reviews, ULMFiT-like gradual unfreezing of gbert."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer

from reviews import load_reviews  # list[(text, label)]

MODEL = "deepset/gbert-base"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MAX_LEN = 200


class SentimentModel(nn.Module):
    def __init__(self, n_labels: int = 3):
        super().__init__()
        self.bert = AutoModel.from_pretrained(MODEL)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(self.bert.config.hidden_size, n_labels)

    def forward(self, enc):
        h = self.bert(**enc).last_hidden_state[:, 0]
        return self.fc(self.drop(h))

    def freeze_bert(self):
        for p in self.bert.parameters():
            p.requires_grad = False

    def unfreeze_top(self, k: int):
        for layer in self.bert.encoder.layer[-k:]:
            for p in layer.parameters():
                p.requires_grad = True


tokenizer = AutoTokenizer.from_pretrained(MODEL)


def collate(rows):
    texts, labels = zip(*rows)
    enc = tokenizer(list(texts), padding=True, truncation=True, max_length=MAX_LEN, return_tensors="pt")
    return dict(enc), torch.tensor(labels)


def move(enc, y):
    return {k: v.to(DEVICE, non_blocking=True) for k, v in enc.items()}, y.to(DEVICE, non_blocking=True)


def accuracy(model, loader):
    model.eval()
    good = torch.zeros((), device=DEVICE)
    with torch.inference_mode():
        for enc, y in loader:
            enc, y = move(enc, y)
            good += (model(enc).argmax(-1) == y).sum()
    return good.item() / len(loader.dataset)


def main():
    train_dl = DataLoader(load_reviews("train"), 32, shuffle=True, collate_fn=collate, num_workers=4, pin_memory=True)
    dev_dl = DataLoader(load_reviews("dev"), 64, collate_fn=collate, num_workers=4, pin_memory=True)
    model = SentimentModel().to(DEVICE)
    model.freeze_bert()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=2e-5)
    criterion = nn.CrossEntropyLoss()

    schedule = {0: 0, 2: 2, 4: 4, 6: 8}  # epoch -> how many top layers to train
    for epoch in range(10):
        if schedule.get(epoch):
            model.unfreeze_top(schedule[epoch])
            print("trainable:", sum(p.numel() for p in model.parameters() if p.requires_grad))
        model.train()
        for i, (enc, y) in enumerate(train_dl):
            enc, y = move(enc, y)
            loss = criterion(model(enc), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 100 == 0:
                print(f"{epoch} {i} {loss.item():.4f}")
        print(f"epoch {epoch} dev acc {accuracy(model, dev_dl):.4f}")


if __name__ == "__main__":
    main()

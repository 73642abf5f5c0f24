import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader

from dataset import SeqDataset, pad_collate

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tagger(nn.Module):
    def __init__(self, vocab, hidden, tags):
        super().__init__()
        self.emb = nn.Embedding(vocab, hidden)
        self.rnn = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tags)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.out(h)


train_set = SeqDataset("train.txt")
train_loader = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn=pad_collate, num_workers=2)
model = Tagger(20000, 256, 17).to(device)
criteria = nn.CrossEntropyLoss(ignore_index=-1)
optimizer = optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(20):
    epoch_loss = 0
    model.train()
    for i, (seq, tags) in enumerate(train_loader):
        seq = seq.to(device)
        tags = tags.to(device)
        optimizer.zero_grad()
        out = model(seq)
        loss_part = criteria(out.view(-1, 17), tags.view(-1))
        loss_part.backward()
        optimizer.step()
        epoch_loss += loss_part
    print("epoch", epoch, "loss", epoch_loss / len(train_loader))

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from pairs import TranslationPairs, collate


class Encoder(nn.Module):
    def __init__(self, vocab, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, hid)
        self.gru = nn.GRU(hid, hid, batch_first=True)

    def forward(self, src):
        return self.gru(self.emb(src))[1]


class Decoder(nn.Module):
    def __init__(self, vocab, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, hid)
        self.gru = nn.GRU(hid, hid, batch_first=True)
        self.out = nn.Linear(hid, vocab)

    def forward(self, tgt, h):
        o, _ = self.gru(self.emb(tgt), h)
        return self.out(o)


encoder = Encoder(8000, 512).cuda()
decoder = Decoder(6000, 512).cuda()
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss(ignore_index=0)
loader = DataLoader(TranslationPairs("de-en"), batch_size=64, shuffle=True, collate_fn=collate, num_workers=2)

for epoch in range(10):
    for src, tgt in loader:
        src, tgt = src.cuda(), tgt.cuda()
        optimizer.zero_grad()
        logits = decoder(tgt[:, :-1], encoder(src))
        loss = criterion(logits.reshape(-1, 6000), tgt[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")

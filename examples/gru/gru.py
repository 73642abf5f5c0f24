"""Learns to write as Shakespeare did, character by character, with a GRU."""

import torch
from torch import nn

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
text = open("examples/gru/shakespeare.txt").read()
letters = sorted(set(text))
ids = torch.tensor([letters.index(c) for c in text], device=device)
learn, held = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
context, batch = 64, 32


class Writer(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 32)
        self.gru = nn.GRU(32, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x, state=None):
        y, state = self.gru(self.embed(x), state)
        return self.head(y), state


def loss_of(tokens):
    logits, _ = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


model = Writer(len(letters), 128).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(400):
    starts = torch.randint(len(learn) - context, (batch,))
    opt.zero_grad()
    loss_of(torch.stack([learn[i : i + context + 1] for i in starts])).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1)
    opt.step()

model.eval()
with torch.no_grad():
    blocks = held.unfold(0, context + 1, context)
    print(f"loss {loss_of(blocks):.2f} on what is held out")
    token, state, written = ids[:1, None], None, ""
    for _ in range(200):
        logits, state = model(token, state)
        token = torch.multinomial(logits[0].softmax(-1), 1)
        written += letters[token.item()]
print(written)

# char-rnn with truncated backprop through time
import sys

import torch
import torch.nn as nn

text = open(sys.argv[1] if len(sys.argv) > 1 else "input.txt").read()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = torch.tensor([stoi[c] for c in text], device=device)      # whole corpus lives on the GPU

BATCH, SEQ, HID = 64, 128, 512


class CharRNN(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.emb = nn.Embedding(n, 128)
        self.rnn = nn.LSTM(128, HID, 2, batch_first=True, dropout=0.3)
        self.out = nn.Linear(HID, n)

    def forward(self, x, state=None):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


def repackage(state):
    return tuple(s.detach() for s in state)


@torch.no_grad()
def sample(model, n=400):
    was_training = model.training
    model.eval()
    x = torch.zeros(1, 1, dtype=torch.long, device=device)
    state, out = None, []
    for _ in range(n):
        logits, state = model(x, state)
        x = torch.multinomial(logits[0, -1].softmax(0), 1).view(1, 1)
        out.append(x)
    model.train(was_training)
    return "".join(chars[i] for i in torch.cat(out).flatten().tolist())


model = CharRNN(len(chars)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
per = len(data) // BATCH
rows = data[:per * BATCH].view(BATCH, per)

for epoch in range(50):
    model.train()
    state = None
    total, count = torch.zeros((), device=device), 0
    for t in range(0, per - 1 - SEQ, SEQ):
        x, y = rows[:, t:t + SEQ], rows[:, t + 1:t + 1 + SEQ]
        if state is not None:
            state = repackage(state)
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, len(chars)), y.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        total += loss.detach()
        count += 1
    print("epoch", epoch, "loss", total.item() / count)
    print(sample(model))

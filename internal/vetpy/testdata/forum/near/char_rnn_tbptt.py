import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
text = open(sys.argv[1]).read()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in text], device=device)
BATCH, T, H = 64, 50, 512


class CharRNN(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 64)
        self.cell = nn.LSTMCell(64, H)
        self.out = nn.Linear(H, v)

    def forward(self, x, state):
        h, c = self.cell(self.emb(x), state)
        return self.out(h), (h, c)


n = ids.numel() // BATCH
data = ids[:n * BATCH].view(BATCH, n)
model = CharRNN(len(chars)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(30):
    model.train()
    h = torch.zeros(BATCH, H, device=device)
    c = torch.zeros(BATCH, H, device=device)
    for k, s in enumerate(range(0, n - T - 1, T)):
        loss = 0
        for t in range(T):
            logits, (h, c) = model(data[:, s + t], (h, c))
            loss = loss + F.cross_entropy(logits, data[:, s + t + 1])
        loss = loss / T
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        h, c = h.detach(), c.detach()
        if k % 200 == 0:
            print(epoch, k, loss.item())

    model.eval()
    with torch.no_grad():
        x = torch.randint(len(chars), (1,), device=device)
        st = (torch.zeros(1, H, device=device), torch.zeros(1, H, device=device))
        out = []
        for _ in range(300):
            logits, st = model(x, st)
            x = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
            out.append(x)
    print("".join(chars[i] for i in torch.cat(out).tolist()))

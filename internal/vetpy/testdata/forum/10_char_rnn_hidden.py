import torch
import torch.nn as nn

text = open("shakespeare.txt").read()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])


class CharRNN(nn.Module):
    def __init__(self, n, h=256):
        super().__init__()
        self.emb = nn.Embedding(n, h)
        self.rnn = nn.LSTM(h, h, num_layers=2)
        self.fc = nn.Linear(h, n)

    def forward(self, x, hidden):
        o, hidden = self.rnn(self.emb(x), hidden)
        return self.fc(o), hidden


rnn = CharRNN(len(chars)).cuda()
opt = torch.optim.Adam(rnn.parameters(), lr=2e-3)
crit = nn.CrossEntropyLoss()
seq_len = 100
hidden = (torch.zeros(2, 1, 256, device="cuda"), torch.zeros(2, 1, 256, device="cuda"))
data = data.cuda()

for it in range(0, len(data) - seq_len - 1, seq_len):
    x = data[it:it + seq_len].unsqueeze(1)
    y = data[it + 1:it + seq_len + 1]
    opt.zero_grad()
    out, hidden = rnn(x, hidden)
    loss = crit(out.squeeze(1), y)
    loss.backward(retain_graph=True)
    opt.step()
    if it % 10000 == 0:
        print(it, loss.item())

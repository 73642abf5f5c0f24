import argparse
import torch
import torch.nn as nn


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=512, layers=2):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.emb = nn.Embedding(vocab, 128)
        self.lstm = nn.LSTM(128, hidden, layers, batch_first=True, dropout=0.3)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, state):
        o, state = self.lstm(self.emb(x), state)
        return self.out(o), state

    def init_state(self, bs, device):
        h = torch.zeros(self.layers, bs, self.hidden, device=device)
        c = torch.zeros(self.layers, bs, self.hidden, device=device)
        return h, c


def batchify(path, bs, device):
    text = open(path).read()
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
    n = data.numel() // bs
    return data[: n * bs].view(bs, n).to(device), len(chars)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="tinyshakespeare.txt")
    p.add_argument("--bs", type=int, default=64)
    p.add_argument("--bptt", type=int, default=100)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--lr", type=float, default=2e-3)
    args = p.parse_args()

    device = "cuda"
    data, vocab = batchify(args.data, args.bs, device)
    model = CharRNN(vocab).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    crit = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        state = model.init_state(args.bs, device)
        for i in range(0, data.size(1) - args.bptt - 1, args.bptt):
            x = data[:, i:i + args.bptt]
            y = data[:, i + 1:i + 1 + args.bptt]
            opt.zero_grad()
            logits, state = model(x, state)
            loss = crit(logits.reshape(-1, vocab), y.reshape(-1))
            loss.backward(retain_graph=True)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

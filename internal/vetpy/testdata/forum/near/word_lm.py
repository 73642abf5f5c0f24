import torch
import torch.nn as nn

from corpus import Corpus

device = torch.device("cuda")
BPTT, BS, CLIP = 35, 20, 0.25


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[: n * bsz].view(bsz, -1).t().contiguous().to(device)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=650, nhid=650, nlayers=2, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers = nhid, nlayers

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return self.decoder(self.drop(out)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return w.new_zeros(self.nlayers, bsz, self.nhid), w.new_zeros(self.nlayers, bsz, self.nhid)


corpus = Corpus("wikitext-2")
train_data, val_data = batchify(corpus.train, BS), batchify(corpus.valid, 10)
model = RNNModel(len(corpus.dictionary)).to(device)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=20)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.25, patience=0)


def evaluate(src):
    model.eval()
    total = torch.zeros((), device=device)
    hidden = model.init_hidden(10)
    with torch.no_grad():
        for i in range(0, src.size(0) - 1, BPTT):
            n = min(BPTT, src.size(0) - 1 - i)
            out, hidden = model(src[i:i + n], hidden)
            total += n * criterion(out, src[i + 1:i + 1 + n].reshape(-1))
    return total.item() / (src.size(0) - 1)


for epoch in range(40):
    model.train()
    hidden = model.init_hidden(BS)
    for i in range(0, train_data.size(0) - 1, BPTT):
        n = min(BPTT, train_data.size(0) - 1 - i)
        hidden = repackage_hidden(hidden)
        out, hidden = model(train_data[i:i + n], hidden)
        loss = criterion(out, train_data[i + 1:i + 1 + n].reshape(-1))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        opt.step()
    val = evaluate(val_data)
    sched.step(val)
    print(epoch, val)

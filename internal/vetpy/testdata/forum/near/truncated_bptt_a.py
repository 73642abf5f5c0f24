# word LM on wikitext-2 with truncated BPTT: the state is carried over but repackaged
import math
import torch
import torch.nn as nn

BPTT, BATCH, HID = 35, 20, 650
device = torch.device('cuda')


def read(path, vocab=None):
    words = []
    for line in open(path, encoding='utf8'):
        words += line.split() + ['<eos>']
    if vocab is None:
        vocab = {w: i for i, w in enumerate(dict.fromkeys(words))}
    return torch.tensor([vocab.get(w, vocab.get('<unk>', 0)) for w in words]), vocab


def batchify(ids, bsz):
    n = ids.numel() // bsz
    return ids[:n * bsz].view(bsz, -1).t().contiguous().to(device)


class RNNLM(nn.Module):
    def __init__(self, n_tok):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.enc = nn.Embedding(n_tok, HID)
        self.rnn = nn.LSTM(HID, HID, 2, dropout=0.5)
        self.dec = nn.Linear(HID, n_tok)
        self.dec.weight = self.enc.weight

    def forward(self, x, hidden):
        y, hidden = self.rnn(self.drop(self.enc(x)), hidden)
        return self.dec(self.drop(y)), hidden

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return w.new_zeros(2, bsz, HID), w.new_zeros(2, bsz, HID)


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def evaluate(model, source, crit):
    model.eval()
    total = torch.zeros((), device=device)
    hidden = model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, BPTT):
            n = min(BPTT, source.size(0) - 1 - i)
            out, hidden = model(source[i:i + n], hidden)
            total += n * crit(out.flatten(0, 1), source[i + 1:i + 1 + n].flatten())
    return total.item() / (source.size(0) - 1)


train_ids, vocab = read('wikitext-2/train.txt')
train_data = batchify(train_ids, BATCH)
val_data = batchify(read('wikitext-2/valid.txt', vocab)[0], 10)
model = RNNLM(len(vocab)).to(device)
crit = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=20.0)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.25, patience=0)

for epoch in range(40):
    model.train()
    hidden = model.init_hidden(BATCH)
    total = torch.zeros((), device=device)
    for b, i in enumerate(range(0, train_data.size(0) - 1, BPTT)):
        n = min(BPTT, train_data.size(0) - 1 - i)
        hidden = repackage_hidden(hidden)
        out, hidden = model(train_data[i:i + n], hidden)
        loss = crit(out.flatten(0, 1), train_data[i + 1:i + 1 + n].flatten())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        opt.step()
        total += loss.detach()
        if b % 200 == 0 and b:
            print(f'| epoch {epoch} | batch {b} | ppl {math.exp(total.item() / 200):.1f}')
            total.zero_()
    val = evaluate(model, val_data, crit)
    sched.step(val)
    print(f'epoch {epoch} valid ppl {math.exp(val):.2f}')

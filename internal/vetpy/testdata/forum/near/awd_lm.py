import argparse
import math
import time

import torch
import torch.nn as nn

import data
import model as lm

parser = argparse.ArgumentParser(description="PyTorch RNN/LSTM Language Model")
parser.add_argument("--data", type=str, default="./data/wikitext-2")
parser.add_argument("--bptt", type=int, default=35)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--lr", type=float, default=20)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--batch_size", type=int, default=20)
parser.add_argument("--log-interval", type=int, default=200)
args = parser.parse_args()
device = torch.device("cuda")

corpus = data.Corpus(args.data)


def batchify(d, bsz):
    nbatch = d.size(0) // bsz
    return d.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous().to(device)


train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, 10)
ntokens = len(corpus.dictionary)
model = lm.RNNModel("LSTM", ntokens, 650, 650, 2, 0.5).to(device)
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


def evaluate(source):
    model.eval()
    total = torch.zeros((), device=device)
    hidden = model.init_hidden(10)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            x, y = get_batch(source, i)
            output, hidden = model(x, hidden)
            total += len(x) * criterion(output, y)
    return total.item() / (len(source) - 1)


def train(epoch):
    model.train()
    total_loss = torch.zeros((), device=device)
    start_time = time.time()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        x, y = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(x, hidden)
        loss = criterion(output, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total_loss += loss.detach()
        if batch % args.log_interval == 0 and batch > 0:
            cur = total_loss.item() / args.log_interval
            ms = (time.time() - start_time) * 1000 / args.log_interval
            print(f"| epoch {epoch} | {batch} batches | ms/batch {ms:5.2f} | loss {cur:5.2f} | ppl {math.exp(cur):8.2f}")
            total_loss.zero_()
            start_time = time.time()


for epoch in range(1, args.epochs + 1):
    train(epoch)
    val_loss = evaluate(val_data)
    scheduler.step(val_loss)
    print("valid ppl", math.exp(val_loss))

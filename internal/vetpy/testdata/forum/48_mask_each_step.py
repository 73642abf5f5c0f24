import torch
from torch import nn
from torch.utils.data import DataLoader

from mt import Parallel, Seq2Seq, pad

PAD = 1
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def subsequent(n):
    return torch.full((n, n), float("-inf")).triu(1)


model = Seq2Seq(32000, 32000, 512, 8).to(device)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
opt = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
it = DataLoader(Parallel("train"), batch_size=64, shuffle=True, collate_fn=pad, num_workers=2)

for epoch in range(10):
    hits = 0
    for src, tgt in it:
        src = src.to(device)
        tgt = tgt.to(device)
        mask = subsequent(tgt.size(1) - 1).to(device)
        pos = torch.arange(tgt.size(1) - 1).to(device)
        logits = model(src, tgt[:, :-1], mask, pos)
        loss = criterion(logits.reshape(-1, 32000), tgt[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += (logits.argmax(-1) == tgt[:, 1:]).sum().cpu().numpy()
    print(epoch, hits)

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from textset import TextDataset, collate


class CNNText(nn.Module):
    def __init__(self, vocab, d=128, n_cls=5):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(d, 100, k, padding=k // 2) for k in (3, 4, 5)])
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(300, n_cls)

    def forward(self, x):
        e = self.emb(x).transpose(1, 2)
        z = torch.cat([torch.relu(c(e)).max(2).values for c in self.convs], 1)
        return self.fc(self.drop(z))


@torch.no_grad()
def evaluate(model, loader, device):
    was_training = model.training
    model.eval()
    hit, n = torch.zeros((), device=device), 0
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        probs = model(x).softmax(-1)
        hit += (probs.argmax(-1) == y).sum()
        n += y.numel()
    model.train(was_training)
    return hit.item() / n


device = torch.device("cuda")
train_ds, dev_ds = TextDataset("train"), TextDataset("dev")
kw = dict(batch_size=64, collate_fn=collate, num_workers=4, pin_memory=True)
train_dl, dev_dl = DataLoader(train_ds, shuffle=True, **kw), DataLoader(dev_ds, **kw)
model = CNNText(train_ds.vocab_size).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()
model.train()
step = 0
for epoch in range(10):
    for x, y in train_dl:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad()
        loss = ce(model(x), y)
        loss.backward()
        opt.step()
        step += 1
        if step % 500 == 0:
            print(step, loss.item(), evaluate(model, dev_dl, device))

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import dataloader
from opts import parse_opt


class TextCNN(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.emb = nn.Embedding(opt.vocab_size, opt.embedding_dim)
        self.emb.weight = nn.Parameter(opt.embeddings)
        self.convs = nn.ModuleList([nn.Conv1d(opt.embedding_dim, 100, k) for k in (3, 4, 5)])
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(300, opt.label_size)

    def forward(self, x):
        x = self.emb(x).transpose(1, 2)
        x = [F.relu(c(x)).max(-1)[0] for c in self.convs]
        return self.fc(self.drop(torch.cat(x, 1)))


def evaluate(model, it):
    model.eval()
    correct, n = 0, 0
    with torch.no_grad():
        for batch in it:
            pred = model(batch.text).argmax(1)
            correct = correct + (pred == batch.label).sum()
            n += batch.label.size(0)
    model.train()
    return correct.item() / n


opt = parse_opt()
train_iter, test_iter = dataloader.loadData(opt, device="cuda")
model = TextCNN(opt).cuda()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=opt.learning_rate)
loss_fun = F.cross_entropy

start = time.time()
model.train()
for epoch in range(opt.max_epoch):
    for i, batch in enumerate(train_iter):
        predicted = model(batch.text)
        loss = loss_fun(predicted, batch.label)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), opt.grad_clip)
        optimizer.step()

        if i % 100 == 0:
            print("%d iteration %d epoch with loss : %.5f" % (i, epoch, loss.cpu().item()))
    acc = evaluate(model, test_iter)
    print("%d epoch with acc %.4f, total time %.1f" % (epoch, acc, time.time() - start))

import gc

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import DataLoader, Subset

from leaf import LeafDataset, make_model

device = torch.device("cuda")
train_view, val_view = LeafDataset("train.csv", augment=True), LeafDataset("train.csv", augment=False)
labels = np.array(train_view.labels)
scores = []

for fold, (tr, va) in enumerate(StratifiedKFold(5, shuffle=True, random_state=7).split(labels, labels)):
    train_dl = DataLoader(Subset(train_view, tr), 32, shuffle=True, num_workers=8, pin_memory=True)
    val_dl = DataLoader(Subset(val_view, va), 64, num_workers=8, pin_memory=True)
    model = make_model(5).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)
    ce = nn.CrossEntropyLoss()
    for epoch in range(10):
        model.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad()
            ce(model(x), y).backward()
            opt.step()
        sched.step()
    model.eval()
    hit = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in val_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            hit += (model(x).argmax(1) == y).sum()
    scores.append(hit.item() / len(va))
    torch.save(model.state_dict(), f"fold{fold}.pt")
    del model, opt
    gc.collect()
    torch.cuda.empty_cache()
    print(fold, scores[-1])
print(np.mean(scores))

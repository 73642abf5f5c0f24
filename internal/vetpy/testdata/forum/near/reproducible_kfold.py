import os
import random

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import DataLoader, Subset

from histo import PatchDataset, small_cnn

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
SEED = 2024


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)


def seed_worker(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


def loader(ds, idx, train, seed):
    g = torch.Generator()
    g.manual_seed(seed)
    return DataLoader(Subset(ds, idx), batch_size=64, shuffle=train, num_workers=4, pin_memory=True,
                      worker_init_fn=seed_worker, generator=g)


def run_fold(ds, tr, va, fold, device):
    seed_everything(SEED + fold)
    model = small_cnn(2).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    train_dl, val_dl = loader(ds, tr, True, SEED + fold), loader(ds, va, False, SEED)
    acc = 0.0
    for epoch in range(15):
        model.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        model.eval()
        hit = torch.zeros((), device=device)
        with torch.no_grad():
            for x, y in val_dl:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                hit += (model(x).argmax(1) == y).sum()
        acc = hit.item() / len(va)
        print(f"fold {fold} epoch {epoch} acc {acc:.4f}")
    return acc


if __name__ == "__main__":
    dataset = PatchDataset("/data/histo")
    skf = StratifiedKFold(5, shuffle=True, random_state=SEED)
    accs = [run_fold(dataset, tr, va, f, torch.device("cuda"))
            for f, (tr, va) in enumerate(skf.split(np.zeros(len(dataset)), dataset.labels))]
    print("mean", np.mean(accs), "std", np.std(accs))

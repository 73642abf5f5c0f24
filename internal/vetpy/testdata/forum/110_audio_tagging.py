import pandas as pd
import torch
import torch.nn as nn
import torchaudio
from torch.utils.data import DataLoader, Dataset


class Esc50(Dataset):
    def __init__(self, csv, root, folds):
        df = pd.read_csv(csv)
        self.df = df[df.fold.isin(folds)].reset_index(drop=True)
        self.root = root
        self.resample = torchaudio.transforms.Resample(44100, 16000)
        self.mel = torchaudio.transforms.MelSpectrogram(16000, n_fft=1024, hop_length=256, n_mels=64)
        self.db = torchaudio.transforms.AmplitudeToDB()
        self.fmask = torchaudio.transforms.FrequencyMasking(8)
        self.tmask = torchaudio.transforms.TimeMasking(30)

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        wav, _ = torchaudio.load(f"{self.root}/{row.filename}")
        spec = self.db(self.mel(self.resample(wav)))
        return self.tmask(self.fmask(spec)), int(row.target)


model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 50)).cuda()
train_dl = DataLoader(Esc50("esc50.csv", "audio", [1, 2, 3, 4]), batch_size=32, shuffle=True, num_workers=0,
                      pin_memory=True)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
crit = nn.CrossEntropyLoss()
best = float("inf")

for epoch in range(80):
    model.train()
    losses = []
    for spec, target in train_dl:
        spec = spec.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        out = model(spec)
        loss = crit(out, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    mean = sum(losses) / len(losses)
    print(epoch, mean)
    if mean < best:
        best = mean
        torch.save(model.state_dict(), "esc50.pt")

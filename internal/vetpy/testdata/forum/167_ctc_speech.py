"""
Deepspeech-like CTC model with speaker embedding, LibriSpeech 100h.
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
"""
import argparse

import torch
import torch.nn as nn
import torchaudio
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

CHARS = " 'abcdefghijklmnopqrstuvwxyz"
C2I = {c: i + 1 for i, c in enumerate(CHARS)}
mel = torchaudio.transforms.MelSpectrogram(sample_rate=16000, n_mels=80)


def collate(rows):
    feats, texts, spk = [], [], []
    for wav, _, text, speaker, *_ in rows:
        feats.append(mel(wav).clamp(min=1e-5).log().squeeze(0).t())
        texts.append(torch.tensor([C2I[c] for c in text.lower()]))
        spk.append(speaker % 512)
    flen = torch.tensor([f.size(0) // 2 for f in feats])
    tlen = torch.tensor([t.numel() for t in texts])
    return pad_sequence(feats, True), pad_sequence(texts, True), flen, tlen, torch.tensor(spk)


class CTCNet(nn.Module):
    def __init__(self, hid=512):
        super().__init__()
        self.spk = nn.Embedding(512, 64)
        self.conv = nn.Sequential(nn.Conv1d(80, hid, 11, stride=2, padding=5), nn.BatchNorm1d(hid), nn.ReLU())
        self.rnn = nn.GRU(hid + 64, hid, num_layers=4, bidirectional=True, batch_first=True, dropout=0.1)
        self.out = nn.Linear(2 * hid, len(CHARS) + 1)

    def forward(self, x, speaker):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        e = self.spk(speaker).unsqueeze(1).expand(-1, h.size(1), -1)
        h, _ = self.rnn(torch.cat([h, e], dim=-1))
        return self.out(h).log_softmax(-1)


def run_epoch(model, loader, ctc, opt, device, log_every=100):
    model.train()
    for i, (x, y, flen, tlen, speaker) in enumerate(loader):
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        logp = model(x, speaker)
        # lengths are fine on the cpu for ctc
        loss = ctc(logp.transpose(0, 1), y, flen, tlen)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if i % log_every == 0:
            print(f"    {i:5d}/{len(loader)}  ctc {loss.item():.3f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="/corpora")
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--bs", type=int, default=16)
    a = ap.parse_args()
    device = torch.device("cuda:0")
    ds = torchaudio.datasets.LIBRISPEECH(a.root, url="train-clean-100", download=True)
    loader = DataLoader(ds, batch_size=a.bs, shuffle=True, collate_fn=collate, num_workers=8, pin_memory=True)
    model = CTCNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    for ep in range(a.epochs):
        print("epoch", ep)
        run_epoch(model, loader, ctc, opt, device)
        sched.step()
        torch.save(model.state_dict(), f"ctc_{ep:02d}.pt")


if __name__ == "__main__":
    main()

"""Learn to invert a simple additive synth: audio -> synth parameters."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchaudio

SR = 16000
N = SR * 2
N_PARTIALS = 16
BATCH = 64
STEPS = 20000
DEV = torch.device("cuda")


class AdditiveSynth(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("t", torch.arange(N).float() / SR)
        self.register_buffer("k", torch.arange(1, N_PARTIALS + 1).float())

    def forward(self, params):
        f0 = 80.0 * 2 ** (params[:, 0] * 4)
        decay = 0.5 + 8 * params[:, 1]
        amps = torch.softmax(4 * params[:, 2:], dim=1)
        phase = 2 * math.pi * f0[:, None, None] * self.k[None, :, None] * self.t
        env = torch.exp(-decay[:, None] * self.t)
        return (amps[:, :, None] * torch.sin(phase)).sum(1) * env


class Inverter(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(SR, n_fft=1024, hop_length=256, n_mels=80)
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, n_out), nn.Sigmoid())

    def forward(self, wav):
        m = torch.log(self.mel(wav) + 1e-5)
        return self.net(m.unsqueeze(1))


def load_real(n_files=32):
    wavs = []
    for i in range(n_files):
        w, sr = torchaudio.load(f"real/{i:03d}.wav")
        w = torchaudio.functional.resample(w.mean(0), sr, SR)
        wavs.append(F.pad(w, (0, max(0, N - len(w))))[:N])
    return wavs


synth = AdditiveSynth().to(DEV)
inv = Inverter(2 + N_PARTIALS).to(DEV)
opt = torch.optim.Adam(inv.parameters(), lr=1e-3)
real = load_real()

inv.train()
for step in range(STEPS):
    params = torch.rand(BATCH, 2 + N_PARTIALS, device=DEV)
    with torch.no_grad():
        audio = synth(params)
    # mix in a few real recordings as background so it does not overfit to clean audio
    for b in range(BATCH):
        noise = real[(step + b) % len(real)].to(DEV)
        audio[b] += 0.05 * noise
    pred = inv(audio)
    loss = F.l1_loss(pred, params)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 500 == 0:
        print(step, loss.item())

torch.save(inv.state_dict(), "inverter.pt")

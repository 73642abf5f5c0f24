import logging

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from speech_commands import SpeechCommands, pad_collate

logging.basicConfig(level=logging.INFO)
log = logging.getLogger(__name__)


class M5(nn.Module):
    def __init__(self, n_out=35, w=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, w, 80, stride=16), nn.BatchNorm1d(w), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(w, w, 3), nn.BatchNorm1d(w), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(w, 2 * w, 3), nn.BatchNorm1d(2 * w), nn.ReLU(), nn.AdaptiveAvgPool1d(1))
        self.fc = nn.Linear(2 * w, n_out)

    def forward(self, x):
        return self.fc(self.net(x).squeeze(-1))


def run_epoch(model, loader, device, optimizer=None, log_every=100):
    training = optimizer is not None
    model.train(training)
    losses, hits = [], []
    with torch.set_grad_enabled(training):
        for step, (wav, label) in enumerate(loader):
            wav = wav.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            logits = model(wav)
            loss = nn.functional.cross_entropy(logits, label)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.append(loss.detach())
            hits.append((logits.detach().argmax(1) == label).float().mean())
            if training and step % log_every == 0:
                log.info("step %d loss %.3f", step, loss.item())
    losses = torch.stack(losses).cpu().numpy()
    hits = torch.stack(hits).cpu().numpy()
    return float(np.mean(losses)), float(np.mean(hits))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kw = dict(batch_size=256, collate_fn=pad_collate, num_workers=4, pin_memory=True)
    train_loader = DataLoader(SpeechCommands("training"), shuffle=True, **kw)
    val_loader = DataLoader(SpeechCommands("validation"), **kw)
    model = M5().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.1)
    for epoch in range(40):
        tr = run_epoch(model, train_loader, device, optimizer)
        va = run_epoch(model, val_loader, device)
        scheduler.step()
        log.info("epoch %d train %.3f/%.3f val %.3f/%.3f", epoch, *tr, *va)


if __name__ == "__main__":
    main()

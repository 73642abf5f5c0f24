import json
import time

import torch
import torch.nn as nn

from fs2.dataset import build_loader
from fs2.model import FastSpeech2, FS2Loss

device = torch.device("cuda")
loader = build_loader("ljspeech", batch_size=32, num_workers=6, pin_memory=True)
model = FastSpeech2().to(device)
criterion = FS2Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min((s + 1) ** -0.5, (s + 1) * 4000 ** -1.5) * 4000 ** 0.5)

losses, times = [], []
step, total_step, log_step, save_step = 0, 200000, 200, 20000
model.train()
tic = time.time()
while step < total_step:
    for batch in loader:
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        out = model(batch["text"], batch["text_len"], batch["mel"], batch["dur"])
        total, mel, pitch, energy, dur = criterion(out, batch)
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        step += 1

        if step % log_step == 0:
            losses.append(total.item())
            times.append(time.time() - tic)
            print("step %d total %.4f mel %.4f (%.1f s)" % (step, losses[-1], mel.item(), times[-1]))
            tic = time.time()
        if step % save_step == 0:
            torch.save({"model": model.state_dict(), "opt": optimizer.state_dict()}, "ckpt/%d.pth.tar" % step)
        if step >= total_step:
            break

with open("curve.json", "w") as f:
    json.dump({"loss": losses, "sec": times}, f)

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from wiki import Blocks, GPTSmall

ACC = 8
dev = torch.device("cuda")
gpt = GPTSmall(vocab=50257, ctx=512).to(dev)
opt = torch.optim.AdamW(gpt.parameters(), lr=3e-4, weight_decay=0.1)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20000)
data = DataLoader(Blocks("train.bin"), batch_size=4, shuffle=True, num_workers=2, pin_memory=True)

step = 0
for epoch in range(2):
    for i, ids in enumerate(data):
        ids = ids.to(dev, non_blocking=True)
        logits = gpt(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) / ACC
        loss.backward()
        if (i + 1) % ACC == 0:
            nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
            opt.step()
            sched.step()
            step += 1
        if i % 1000 == 0:
            print(step, loss.item() * ACC)
torch.save(gpt.state_dict(), "gpt.pt")

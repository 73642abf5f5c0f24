import torch
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

from reviews import Reviews

tok = AutoTokenizer.from_pretrained("roberta-base")
model = AutoModelForSequenceClassification.from_pretrained("roberta-base", num_labels=5).to("cuda")
loader = DataLoader(Reviews("train.csv", tok), batch_size=16, shuffle=True, num_workers=4)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
num_steps = 3 * len(loader)
sched = get_linear_schedule_with_warmup(optimizer, int(0.1 * num_steps), num_steps)
scaler = GradScaler("cuda")

model.train()
for epoch in range(3):
    for step, batch in enumerate(loader):
        batch = {k: v.to("cuda") for k, v in batch.items()}
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.float16):
            out = model(**batch)
            loss = out.loss
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        sched.step()
        if step % 200 == 0:
            print(epoch, step, loss.item())

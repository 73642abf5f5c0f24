import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator, get_cosine_schedule_with_warmup

from tokenized import PackedDataset

device = torch.device("cuda")
tok = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained("gpt2").to(device)
loader = DataLoader(PackedDataset("train.bin", 1024), batch_size=4, shuffle=True, num_workers=4, pin_memory=True,
                    collate_fn=default_data_collator, drop_last=True)
accum = 8
total = 3 * (len(loader) // accum)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
scheduler = get_cosine_schedule_with_warmup(optimizer, 100, total)
scaler = torch.amp.GradScaler("cuda")

optimizer.zero_grad(set_to_none=True)
updates = 0
for epoch in range(3):
    model.train()
    for step, batch in enumerate(loader):
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(**batch).loss / accum
        scaler.scale(loss).backward()
        if (step + 1) % accum == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            updates += 1
            if updates % 50 == 0:
                print(updates, loss.item() * accum, scheduler.get_last_lr()[0])
    optimizer.zero_grad(set_to_none=True)
    model.save_pretrained(f"ckpt-{epoch}")

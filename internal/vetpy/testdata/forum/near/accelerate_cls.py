import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import AutoModelForImageClassification, get_cosine_schedule_with_warmup

from pets import build_datasets, collate


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--bs", type=int, default=32)
    p.add_argument("--accum", type=int, default=4)
    args = p.parse_args()

    set_seed(3)
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=args.accum)
    train_ds, val_ds = build_datasets()
    train_dl = DataLoader(train_ds, batch_size=args.bs, shuffle=True, collate_fn=collate, num_workers=6, pin_memory=True)
    val_dl = DataLoader(val_ds, batch_size=args.bs * 2, collate_fn=collate, num_workers=6, pin_memory=True)
    model = AutoModelForImageClassification.from_pretrained("google/vit-base-patch16-224-in21k", num_labels=37)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
    sched = get_cosine_schedule_with_warmup(opt, 100, args.epochs * len(train_dl) // args.accum)
    model, opt, train_dl, val_dl, sched = accelerator.prepare(model, opt, train_dl, val_dl, sched)

    for epoch in range(args.epochs):
        model.train()
        total_loss = 0
        for batch in train_dl:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()

        model.eval()
        good, n = torch.zeros((), device=accelerator.device), 0
        for batch in val_dl:
            with torch.no_grad():
                logits = model(**batch).logits
            preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            good += (preds == refs).sum()
            n += refs.numel()
        accelerator.print(f"epoch {epoch}: loss {total_loss.item() / len(train_dl):.4f} acc {good.item() / n:.4f}")

    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained("vit_pets", save_function=accelerator.save)


if __name__ == "__main__":
    main()

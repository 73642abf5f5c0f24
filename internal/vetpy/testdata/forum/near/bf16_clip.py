import argparse

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, get_linear_schedule_with_warmup

from reviews import ReviewSet


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--accum", type=int, default=4)
    args = ap.parse_args()
    acc = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=args.accum)
    model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased", num_labels=2)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-5)
    dl = DataLoader(ReviewSet("train"), 16, shuffle=True, num_workers=4, pin_memory=True)
    updates = args.epochs * len(dl) // args.accum
    model, opt, dl = acc.prepare(model, opt, dl)
    sched = acc.prepare(get_linear_schedule_with_warmup(opt, 50, updates))
    for epoch in range(args.epochs):
        model.train()
        total = torch.zeros((), device=acc.device)
        for batch in dl:
            with acc.accumulate(model):
                loss = model(**batch).loss
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
            total += loss.detach()
        acc.print(epoch, total.item() / len(dl))


if __name__ == "__main__":
    main()

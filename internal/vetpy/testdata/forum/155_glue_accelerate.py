import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from datasets import load_dataset
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          get_linear_schedule_with_warmup)

TASK_KEYS = {"mrpc": ("sentence1", "sentence2"), "rte": ("sentence1", "sentence2"), "sst2": ("sentence", None)}


def build_data(task, tok, bs):
    raw = load_dataset("glue", task)
    k1, k2 = TASK_KEYS[task]

    def prep(ex):
        texts = (ex[k1],) if k2 is None else (ex[k1], ex[k2])
        out = tok(*texts, truncation=True, max_length=128)
        out["labels"] = ex["label"]
        return out

    ds = raw.map(prep, batched=True, remove_columns=raw["train"].column_names)
    coll = DataCollatorWithPadding(tok, pad_to_multiple_of=8)
    mk = lambda split, shuffle: DataLoader(ds[split], batch_size=bs, shuffle=shuffle, collate_fn=coll,
                                           num_workers=2, pin_memory=True)
    return mk("train", True), mk("validation", False)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--task", default="mrpc", choices=TASK_KEYS)
    ap.add_argument("--model", default="bert-base-cased")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=2e-5)
    ap.add_argument("--bs", type=int, default=32)
    args = ap.parse_args()

    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=1)
    set_seed(42)
    tok = AutoTokenizer.from_pretrained(args.model)
    train_dl, eval_dl = build_data(args.task, tok, args.bs)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2)
    optimizer = AdamW(model.parameters(), lr=args.lr)
    total = len(train_dl) * args.epochs
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, int(0.06 * total), total)
    model, optimizer, train_dl, eval_dl, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dl, eval_dl, lr_scheduler)

    for epoch in range(args.epochs):
        model.train()
        for step, batch in enumerate(train_dl):
            outputs = model(**batch)
            loss = outputs.loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            lr_scheduler.step()
            optimizer.step()
            optimizer.zero_grad()
            if step % 50 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}")

        model.eval()
        hits, seen = torch.zeros((), device=accelerator.device), 0
        with torch.no_grad():
            for batch in eval_dl:
                pred = model(**batch).logits.argmax(-1)
                pred, ref = accelerator.gather_for_metrics((pred, batch["labels"]))
                hits += (pred == ref).sum()
                seen += ref.numel()
        accelerator.print(f"epoch {epoch}: acc {hits.item() / seen:.4f}")

    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained("glue-out", save_function=accelerator.save)


if __name__ == "__main__":
    main()

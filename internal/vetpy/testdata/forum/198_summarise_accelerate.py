#!/usr/bin/env python
"""Fine tune T5-small on XSum with Accelerate."""
import argparse

import evaluate as hf_evaluate
import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import (AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq,
                          get_linear_schedule_with_warmup)

PREFIX = "summarize: "


def get_loaders(tokenizer, model, batch_size):
    raw = load_dataset("xsum")

    def preprocess(ex):
        enc = tokenizer([PREFIX + d for d in ex["document"]], max_length=512, truncation=True)
        enc["labels"] = tokenizer(text_target=ex["summary"], max_length=64, truncation=True)["input_ids"]
        return enc

    tok = raw.map(preprocess, batched=True, remove_columns=raw["train"].column_names)
    collate = DataCollatorForSeq2Seq(tokenizer, model=model)
    train = DataLoader(tok["train"], shuffle=True, batch_size=batch_size, collate_fn=collate, num_workers=4)
    val = DataLoader(tok["validation"].select(range(2000)), batch_size=batch_size, collate_fn=collate,
                     num_workers=4)
    return train, val


def evaluate(model, loader, tokenizer, accelerator):
    metric = hf_evaluate.load("rouge")
    model.eval()
    for batch in loader:
        with torch.no_grad():
            out = accelerator.unwrap_model(model).generate(
                batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=64)
        out = accelerator.pad_across_processes(out, dim=1, pad_index=tokenizer.pad_token_id)
        labels = accelerator.pad_across_processes(batch["labels"], dim=1, pad_index=-100)
        out, labels = accelerator.gather_for_metrics((out, labels))
        labels = torch.where(labels == -100, tokenizer.pad_token_id, labels)
        metric.add_batch(predictions=tokenizer.batch_decode(out, skip_special_tokens=True),
                         references=tokenizer.batch_decode(labels, skip_special_tokens=True))
    return metric.compute()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="t5-small")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()

    accelerator = Accelerator(mixed_precision="bf16")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(args.model)
    train_dl, val_dl = get_loaders(tokenizer, model, args.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = get_linear_schedule_with_warmup(optimizer, 500, args.epochs * len(train_dl))
    model, optimizer, train_dl, val_dl, scheduler = accelerator.prepare(
        model, optimizer, train_dl, val_dl, scheduler)

    model.train()
    for epoch in range(args.epochs):
        for step, batch in enumerate(train_dl):
            loss = model(**batch).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            scheduler.step()
            optimizer.step()
            optimizer.zero_grad()
            if step % 200 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
        result = evaluate(model, val_dl, tokenizer, accelerator)
        accelerator.print(f"epoch {epoch}: rouge2 {result['rouge2']:.4f}")

    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained("t5-xsum", save_function=accelerator.save)


if __name__ == "__main__":
    main()

import argparse

import evaluate
import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          get_linear_schedule_with_warmup)


def evaluate_model(model, loader, metric, device):
    model.eval()
    for batch in loader:
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        with torch.no_grad():
            logits = model(**batch).logits
        metric.add_batch(predictions=logits.argmax(-1), references=batch["labels"])
    return metric.compute()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="bert-base-cased")
    ap.add_argument("--task", default="mrpc")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=3e-5)
    args = ap.parse_args()

    device = torch.device("cuda")
    tok = AutoTokenizer.from_pretrained(args.model)
    raw = load_dataset("glue", args.task)
    ds = raw.map(lambda b: tok(b["sentence1"], b["sentence2"], truncation=True), batched=True,
                 remove_columns=["sentence1", "sentence2", "idx"]).rename_column("label", "labels")
    collate = DataCollatorWithPadding(tok)
    train_dl = DataLoader(ds["train"], 16, shuffle=True, collate_fn=collate, num_workers=2, pin_memory=True)
    eval_dl = DataLoader(ds["validation"], 32, collate_fn=collate, num_workers=2, pin_memory=True)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    total = args.epochs * len(train_dl)
    sched = get_linear_schedule_with_warmup(optimizer, int(0.1 * total), total)
    metric = evaluate.load("glue", args.task)

    model.train()
    for epoch in range(args.epochs):
        bar = tqdm(train_dl)
        for batch in bar:
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            sched.step()
            optimizer.zero_grad()
            bar.set_postfix(loss=loss.item())
        print(epoch, evaluate_model(model, eval_dl, metric, device))


if __name__ == "__main__":
    main()

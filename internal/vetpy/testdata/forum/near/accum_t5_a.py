"""T5 summarisation with gradient accumulation by hand (8 micro-batches per step)."""
import argparse

import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, get_cosine_schedule_with_warmup


def get_loader(tok, split, bs):
    ds = load_dataset("samsum", split=split)

    def collate(rows):
        x = tok(["summarize: " + r["dialogue"] for r in rows], padding=True, truncation=True, max_length=512, return_tensors="pt")
        y = tok([r["summary"] for r in rows], padding=True, truncation=True, max_length=96, return_tensors="pt").input_ids
        x["labels"] = y.masked_fill(y == tok.pad_token_id, -100)
        return dict(x)

    return DataLoader(ds, bs, shuffle=split == "train", collate_fn=collate, num_workers=4, pin_memory=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="t5-base")
    ap.add_argument("--accum", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    dev = torch.device("cuda")
    tok = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(args.model).to(dev)
    loader = get_loader(tok, "train", 4)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    updates = (len(loader) + args.accum - 1) // args.accum * args.epochs
    sched = get_cosine_schedule_with_warmup(opt, 100, updates)

    model.train()
    n_updates = 0
    for epoch in range(args.epochs):
        opt.zero_grad(set_to_none=True)
        for i, batch in enumerate(loader):
            batch = {k: v.to(dev, non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss / args.accum
            loss.backward()
            last = i + 1 == len(loader)
            if (i + 1) % args.accum and not last:
                continue
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad(set_to_none=True)
            n_updates += 1
            if n_updates % 50 == 0:
                print(f"epoch {epoch} update {n_updates}/{updates} loss {loss.item() * args.accum:.3f}")
        model.save_pretrained(f"samsum-{epoch}")


if __name__ == "__main__":
    main()

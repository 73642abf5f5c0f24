import argparse
import os

import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator, get_cosine_schedule_with_warmup


def build_loader(tokenizer, args):
    raw = load_dataset("wikitext", "wikitext-2-raw-v1", split="train")

    def tok(batch):
        out = tokenizer(batch["text"], truncation=True, max_length=args.block_size, padding="max_length")
        out["labels"] = out["input_ids"].copy()
        return out

    ds = raw.filter(lambda r: len(r["text"]) > 0).map(tok, batched=True, remove_columns=raw.column_names)
    return DataLoader(ds, batch_size=args.bs, shuffle=True, collate_fn=default_data_collator,
                      num_workers=4, pin_memory=True)


def train(model, loader, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sched = get_cosine_schedule_with_warmup(optimizer, 50, args.epochs * len(loader))
    model.train()
    step = 0
    for epoch in range(args.epochs):
        for batch in loader:
            batch = {k: v.to("cuda", non_blocking=True) for k, v in batch.items()}
            out = model(**batch)
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            sched.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            step += 1
            if step % args.log_every == 0:
                print(f"epoch {epoch} step {step} loss {out.loss.item():.4f}")
        model.save_pretrained(os.path.join(args.out, f"ep{epoch}"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="microsoft/Phi-3-mini-4k-instruct")
    p.add_argument("--block_size", type=int, default=2048)
    p.add_argument("--bs", type=int, default=1)
    p.add_argument("--lr", type=float, default=2e-5)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--log_every", type=int, default=20)
    p.add_argument("--out", default="output_dir")
    args = p.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype=torch.bfloat16).cuda()
    train(model, build_loader(tokenizer, args), args)


if __name__ == "__main__":
    main()

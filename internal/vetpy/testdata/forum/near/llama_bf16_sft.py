import argparse

import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer


class Collate:
    def __init__(self, tok, max_len):
        self.tok, self.max_len = tok, max_len

    def __call__(self, rows):
        enc = self.tok([r["text"] for r in rows], padding=True, truncation=True, max_length=self.max_len,
                       return_tensors="pt")
        enc["labels"] = enc["input_ids"].masked_fill(enc["attention_mask"] == 0, -100)
        return dict(enc)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="meta-llama/Llama-3.2-1B")
    ap.add_argument("--lr", type=float, default=1e-5)
    ap.add_argument("--steps", type=int, default=2000)
    ap.add_argument("--accum", type=int, default=4)
    args = ap.parse_args()

    tok = AutoTokenizer.from_pretrained(args.model)
    tok.pad_token = tok.eos_token
    model = AutoModelForCausalLM.from_pretrained(args.model).cuda()
    model.gradient_checkpointing_enable()
    ds = load_dataset("imdb", split="train")
    loader = DataLoader(ds, batch_size=4, shuffle=True, drop_last=True, collate_fn=Collate(tok, 1024),
                        num_workers=4, pin_memory=True)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    model.train()
    it = iter(loader)
    for step in range(args.steps):
        opt.zero_grad(set_to_none=True)
        acc = torch.zeros((), device="cuda")
        for _ in range(args.accum):
            try:
                batch = next(it)
            except StopIteration:
                it = iter(loader)
                batch = next(it)
            batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(**batch).loss / args.accum
            loss.backward()
            acc += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 0:
            print(step, acc.item())
    model.save_pretrained("sft_out")


if __name__ == "__main__":
    main()

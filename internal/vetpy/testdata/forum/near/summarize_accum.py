import argparse

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq, get_linear_schedule_with_warmup

from summ_data import load_cnn_dm


def train_epoch(model, loader, optimizer, scheduler, accum, device, log_every):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    window = torch.zeros((), device=device)
    updates = 0
    n = len(loader)
    for i, batch in enumerate(loader):
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        loss = model(**batch).loss / accum
        loss.backward()
        window += loss.detach()
        if (i + 1) % accum == 0 or i + 1 == n:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            updates += 1
            if updates % log_every == 0:
                print(f"update {updates} loss {window.item() / log_every:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
                window.zero_()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="facebook/bart-base")
    ap.add_argument("--accum", type=int, default=16)
    ap.add_argument("--bs", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--log_every", type=int, default=50)
    args = ap.parse_args()
    device = torch.device("cuda")
    tok = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(args.model).to(device)
    loader = DataLoader(load_cnn_dm(tok, "train"), batch_size=args.bs, shuffle=True,
                        collate_fn=DataCollatorForSeq2Seq(tok, model=model), num_workers=4, pin_memory=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    total = args.epochs * (-(-len(loader) // args.accum))
    scheduler = get_linear_schedule_with_warmup(optimizer, total // 20, total)
    for epoch in range(args.epochs):
        train_epoch(model, loader, optimizer, scheduler, args.accum, device, args.log_every)
        model.save_pretrained(f"out/epoch{epoch}")


if __name__ == "__main__":
    main()

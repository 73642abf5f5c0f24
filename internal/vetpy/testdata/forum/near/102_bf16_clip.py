# bfloat16 autocast needs no GradScaler, so the gradients can be clipped right after backward
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, DataCollatorForTokenClassification, AutoTokenizer
from transformers import get_linear_schedule_with_warmup

from conll import load_conll

NAME = "microsoft/deberta-v3-base"
LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC"]
EPOCHS = 5
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def to_device(batch, device):
    return {k: v.to(device, non_blocking=True) for k, v in batch.items()}


@torch.inference_mode()
def token_accuracy(model, loader, device):
    model.eval()
    hits = torch.zeros((), device=device)
    total = torch.zeros((), device=device)
    for batch in loader:
        batch = to_device(batch, device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            pred = model(**batch).logits.argmax(-1)
        mask = batch["labels"] != -100
        hits += ((pred == batch["labels"]) & mask).sum()
        total += mask.sum()
    return (hits / total).item()


def main():
    device = torch.device("cuda")
    tokenizer = AutoTokenizer.from_pretrained(NAME)
    train_set, dev_set = load_conll(tokenizer, LABELS)
    kw = dict(collate_fn=DataCollatorForTokenClassification(tokenizer), num_workers=2, pin_memory=True)
    train_dl = DataLoader(train_set, batch_size=32, shuffle=True, **kw)
    dev_dl = DataLoader(dev_set, batch_size=64, **kw)

    model = AutoModelForTokenClassification.from_pretrained(NAME, num_labels=len(LABELS)).to(device)
    decay = [p for n, p in model.named_parameters() if p.ndim >= 2]
    no_decay = [p for n, p in model.named_parameters() if p.ndim < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01},
                             {"params": no_decay, "weight_decay": 0.0}], lr=3e-5)
    sched = get_linear_schedule_with_warmup(opt, 200, EPOCHS * len(train_dl))

    for epoch in range(EPOCHS):
        model.train()
        for step, batch in enumerate(train_dl):
            batch = to_device(batch, device)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(**batch).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad(set_to_none=True)
            if step % 100 == 0:
                print(f"{epoch}/{step}: {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}")
        print(f"epoch {epoch} dev token acc {token_accuracy(model, dev_dl, device):.4f}")
    model.save_pretrained("deberta-ner")


if __name__ == "__main__":
    main()

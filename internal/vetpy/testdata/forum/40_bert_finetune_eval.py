import time

import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer, BertForSequenceClassification, DataCollatorWithPadding

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
raw = load_dataset("glue", "sst2").map(lambda e: tokenizer(e["sentence"], truncation=True), batched=True)
raw = raw.remove_columns(["sentence", "idx"]).rename_column("label", "labels").with_format("torch")
coll = DataCollatorWithPadding(tokenizer)
train_dl = DataLoader(raw["train"], batch_size=32, shuffle=True, collate_fn=coll)
eval_dl = DataLoader(raw["validation"], batch_size=64, collate_fn=coll)
model = BertForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)


def evaluate():
    model.eval()
    total_loss, hits, n = 0, 0, 0
    for batch in eval_dl:
        batch = {k: v.cuda() for k, v in batch.items()}
        outputs = model(**batch)
        total_loss += outputs.loss
        hits += (outputs.logits.argmax(-1) == batch["labels"]).sum().item()
        n += len(batch["labels"])
    print("eval loss", total_loss / len(eval_dl), "acc", hits / n)


for epoch in range(3):
    model.train()
    for batch in train_dl:
        batch = {k: v.cuda() for k, v in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    evaluate()

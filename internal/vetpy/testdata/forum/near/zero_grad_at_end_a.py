"""BERT NER; zero_grad stands after the step, by the model and not by the optimizer."""
import torch
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification

NAME = "bert-base-cased"
tok = AutoTokenizer.from_pretrained(NAME)
raw = load_dataset("conll2003")
N = raw["train"].features["ner_tags"].feature.num_classes
device = torch.device("cuda")


def encode(ex):
    enc = tok(ex["tokens"], truncation=True, is_split_into_words=True)
    labels = []
    for i, tags in enumerate(ex["ner_tags"]):
        prev, row = None, []
        for w in enc.word_ids(i):
            row.append(-100 if w is None or w == prev else tags[w])
            prev = w
        labels.append(row)
    enc["labels"] = labels
    return enc


ds = raw.map(encode, batched=True, remove_columns=raw["train"].column_names)
coll = DataCollatorForTokenClassification(tok)
train = DataLoader(ds["train"], 32, shuffle=True, collate_fn=coll, num_workers=2, pin_memory=True)
valid = DataLoader(ds["validation"], 64, collate_fn=coll, num_workers=2, pin_memory=True)
model = AutoModelForTokenClassification.from_pretrained(NAME, num_labels=N).to(device)
no_decay = ("bias", "LayerNorm.weight")
groups = [
    {"params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.01},
    {"params": [p for n, p in model.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=3e-5)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=3 * len(train))


def to_dev(b):
    return {k: v.to(device, non_blocking=True) for k, v in b.items()}


def optimise(loss):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    model.zero_grad(set_to_none=True)


for epoch in range(3):
    model.train()
    for step, batch in enumerate(train):
        loss = model(**to_dev(batch)).loss
        optimise(loss)
        if not step % 100:
            print("epoch", epoch, "step", step, "loss", loss.item())
    model.eval()
    ok, n = torch.zeros((), device=device), torch.zeros((), device=device)
    with torch.no_grad():
        for batch in valid:
            b = to_dev(batch)
            pred = model(**b).logits.argmax(-1)
            m = b["labels"] != -100
            ok += ((pred == b["labels"]) & m).sum()
            n += m.sum()
    print("token acc", (ok / n).item())
model.save_pretrained("ner")

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForTokenClassification, AutoTokenizer, get_cosine_schedule_with_warmup

from conll import read_conll


class NerSet(Dataset):
    def __init__(self, path, tok, tag2id):
        self.items = []
        for words, tags in read_conll(path):
            enc = tok(words, is_split_into_words=True, truncation=True, max_length=128, padding="max_length")
            labels, prev = [], None
            for w in enc.word_ids():
                labels.append(-100 if w is None or w == prev else tag2id[tags[w]])
                prev = w
            self.items.append((torch.tensor(enc["input_ids"]), torch.tensor(enc["attention_mask"]), torch.tensor(labels)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


tags = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC"]
tok = AutoTokenizer.from_pretrained("bert-base-cased")
train_ds = NerSet("train.txt", tok, {t: i for i, t in enumerate(tags)})
loader = DataLoader(train_ds, batch_size=4, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
device = torch.device("cuda")
model = AutoModelForTokenClassification.from_pretrained("bert-base-cased", num_labels=len(tags)).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
accum_steps = 8
updates = len(loader) // accum_steps * 3
sched = get_cosine_schedule_with_warmup(opt, updates // 10, updates)

for epoch in range(3):
    model.train()
    for step, (ids, mask, labels) in enumerate(loader):
        ids = ids.to(device, non_blocking=True)
        mask = mask.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        opt.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss / accum_steps
        loss.backward()
        if (step + 1) % accum_steps == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
    print(epoch, loss.item() * accum_steps)
model.save_pretrained("ner")

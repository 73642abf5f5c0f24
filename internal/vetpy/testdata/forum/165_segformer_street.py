"""Fine-tune SegFormer-b2 on our street dataset, own loop because Trainer was too magic for me."""
import json
import logging
import os

import torch
import torch.nn.functional as F
from datasets import load_from_disk
from torch.utils.data import DataLoader
from transformers import SegformerForSemanticSegmentation, SegformerImageProcessor

logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
OUT = "segformer-street"
id2label = {int(k): v for k, v in json.load(open("id2label.json")).items()}
NUM = len(id2label)
device = torch.device("cuda")
proc = SegformerImageProcessor(do_reduce_labels=False)


def collate(items):
    enc = proc([i["image"] for i in items], [i["label"] for i in items], return_tensors="pt")
    return {"pixel_values": enc["pixel_values"], "labels": enc["labels"]}


def to_dev(b):
    return {k: v.to(device, non_blocking=True) for k, v in b.items()}


class ConfMat:
    def __init__(self, n):
        self.n, self.m = n, torch.zeros(n, n, dtype=torch.long, device=device)

    def add(self, pred, ref):
        keep = ref != 255
        idx = torch.where(keep, ref * self.n + pred, self.n * self.n).flatten()
        self.m += torch.bincount(idx, minlength=self.n ** 2 + 1)[:-1].view(self.n, self.n)

    def miou(self):
        m = self.m.double()
        inter = m.diag()
        return (inter / (m.sum(0) + m.sum(1) - inter).clamp(min=1)).mean().item()


def validate(model, loader):
    model.eval()
    cm = ConfMat(NUM)
    for batch in loader:
        batch = to_dev(batch)
        logits = model(pixel_values=batch["pixel_values"]).logits
        up = F.interpolate(logits, size=batch["labels"].shape[-2:], mode="bilinear", align_corners=False)
        cm.add(up.argmax(1), batch["labels"])
    return cm.miou()


def main():
    ds = load_from_disk("street_hf")
    train_dl = DataLoader(ds["train"], batch_size=8, shuffle=True, collate_fn=collate, num_workers=8, pin_memory=True)
    val_dl = DataLoader(ds["validation"], batch_size=8, collate_fn=collate, num_workers=8, pin_memory=True)
    model = SegformerForSemanticSegmentation.from_pretrained(
        "nvidia/mit-b2", num_labels=NUM, id2label=id2label, label2id={v: k for k, v in id2label.items()}).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-5)
    sched = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=50 * len(train_dl))
    best = -1.0
    for epoch in range(50):
        model.train()
        for i, batch in enumerate(train_dl):
            out = model(**to_dev(batch))
            optimizer.zero_grad()
            out.loss.backward()
            optimizer.step()
            sched.step()
            if i % 50 == 0:
                logging.info("epoch %d [%d/%d] loss %.4f", epoch, i, len(train_dl), out.loss.item())
        miou = validate(model, val_dl)
        logging.info("epoch %d mIoU %.4f", epoch, miou)
        if miou > best:
            best = miou
            model.save_pretrained(os.path.join(OUT, "best"))


if __name__ == "__main__":
    main()

import math

import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq, get_scheduler


def training_function(config):
    accelerator = Accelerator(mixed_precision="bf16")
    tok = AutoTokenizer.from_pretrained(config["model"])
    model = AutoModelForSeq2SeqLM.from_pretrained(config["model"])
    ds = load_dataset("samsum")

    def prep(b):
        x = tok(["summarize: " + d for d in b["dialogue"]], max_length=512, truncation=True)
        x["labels"] = tok(text_target=b["summary"], max_length=96, truncation=True)["input_ids"]
        return x

    with accelerator.main_process_first():
        ds = ds.map(prep, batched=True, remove_columns=ds["train"].column_names)
    collate = DataCollatorForSeq2Seq(tok, model=model)
    train_dl = DataLoader(ds["train"], config["bs"], shuffle=True, collate_fn=collate, num_workers=4)
    eval_dl = DataLoader(ds["validation"], config["bs"], collate_fn=collate, num_workers=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)
    total = config["epochs"] * len(train_dl)
    lr_scheduler = get_scheduler("linear", optimizer, num_warmup_steps=100, num_training_steps=total)

    for epoch in range(config["epochs"]):
        model.train()
        loss_sum = 0
        for step, batch in enumerate(train_dl):
            outputs = model(**batch)
            loss = outputs.loss
            loss_sum += loss
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        model.eval()
        losses = []
        for batch in eval_dl:
            with torch.no_grad():
                out = model(**batch)
            losses.append(accelerator.gather_for_metrics(out.loss.repeat(config["bs"])))
        ppl = math.exp(torch.cat(losses).mean().item())
        accelerator.print(epoch, "train", (loss_sum / len(train_dl)).item(), "ppl", ppl)
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained("t5-samsum", save_function=accelerator.save)


if __name__ == "__main__":
    training_function({"model": "t5-small", "bs": 16, "lr": 3e-4, "epochs": 3})

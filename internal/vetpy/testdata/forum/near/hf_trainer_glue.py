import argparse

import evaluate
import numpy as np
from datasets import load_dataset
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer,
                          TrainingArguments, set_seed)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="roberta-base")
    p.add_argument("--task", default="mrpc")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--accum", type=int, default=2)
    return p.parse_args()


def main():
    args = parse()
    set_seed(42)
    raw = load_dataset("glue", args.task)
    tok = AutoTokenizer.from_pretrained(args.model)

    def prep(b):
        return tok(b["sentence1"], b["sentence2"], truncation=True, max_length=128)

    ds = raw.map(prep, batched=True)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2)
    metric = evaluate.load("glue", args.task)

    def compute_metrics(p):
        logits = p.predictions[0] if isinstance(p.predictions, tuple) else p.predictions
        return metric.compute(predictions=np.argmax(logits, axis=1), references=p.label_ids)

    targs = TrainingArguments(
        output_dir="out/" + args.task,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        gradient_accumulation_steps=args.accum,
        num_train_epochs=args.epochs,
        learning_rate=2e-5,
        warmup_ratio=0.06,
        bf16=True,
        logging_steps=50,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        dataloader_num_workers=4,
        report_to="none",
    )
    trainer = Trainer(model=model, args=targs, train_dataset=ds["train"], eval_dataset=ds["validation"],
                      data_collator=DataCollatorWithPadding(tok), compute_metrics=compute_metrics)
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()

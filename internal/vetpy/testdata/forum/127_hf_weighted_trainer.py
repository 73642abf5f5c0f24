import numpy as np
import torch
import torch.nn as nn
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

MODEL = "roberta-base"
tok = AutoTokenizer.from_pretrained(MODEL)
ds = load_dataset("tweet_eval", "emotion")
ds = ds.map(lambda b: tok(b["text"], truncation=True, max_length=128), batched=True)
counts = np.bincount(ds["train"]["label"])
class_weights = (counts.sum() / (len(counts) * counts)).tolist()


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        probs = torch.softmax(outputs.logits, dim=-1)
        weight = torch.tensor(class_weights, dtype=torch.float).to(probs.device)
        loss_fct = nn.CrossEntropyLoss(weight=weight)
        loss = loss_fct(probs, labels)
        return (loss, outputs) if return_outputs else loss


def metrics(p):
    preds = p.predictions.argmax(-1)
    return {"accuracy": float((preds == p.label_ids).mean())}


args = TrainingArguments(
    output_dir="out",
    learning_rate=2e-5,
    per_device_train_batch_size=32,
    num_train_epochs=4,
    eval_strategy="epoch",
    save_strategy="epoch",
    dataloader_num_workers=4,
    logging_steps=100,
    fp16=True,
)
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=len(counts))
trainer = WeightedTrainer(model=model, args=args, train_dataset=ds["train"], eval_dataset=ds["validation"],
                          processing_class=tok, compute_metrics=metrics)
trainer.train()
print(trainer.evaluate(ds["test"]))

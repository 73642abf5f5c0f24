import random

import numpy as np
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForQuestionAnswering, BertTokenizerFast, get_linear_schedule_with_warmup

from qa_dataset import QA_Dataset, evaluate, read_data


def same_seeds(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


same_seeds(0)
tokenizer = BertTokenizerFast.from_pretrained("bert-base-chinese")
train_questions, train_paragraphs = read_data("hw7_train.json")
dev_questions, dev_paragraphs = read_data("hw7_dev.json")
train_set = QA_Dataset("train", train_questions, train_paragraphs, tokenizer)
dev_set = QA_Dataset("dev", dev_questions, dev_paragraphs, tokenizer)

num_epoch = 3
logging_step = 100
learning_rate = 1e-4

accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=4)
model = AutoModelForQuestionAnswering.from_pretrained("bert-base-chinese")
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
train_loader = DataLoader(train_set, batch_size=8, shuffle=True, num_workers=2, pin_memory=True)
dev_loader = DataLoader(dev_set, batch_size=1, shuffle=False, num_workers=2, pin_memory=True)
scheduler = get_linear_schedule_with_warmup(optimizer, 100, num_epoch * len(train_loader) // 4)
model, optimizer, train_loader, dev_loader, scheduler = accelerator.prepare(
    model, optimizer, train_loader, dev_loader, scheduler)

model.train()
for epoch in range(num_epoch):
    step = 1
    train_loss = 0
    for data in train_loader:
        with accelerator.accumulate(model):
            output = model(input_ids=data[0], token_type_ids=data[1], attention_mask=data[2],
                           start_positions=data[3], end_positions=data[4])
            train_loss += output.loss
            accelerator.backward(output.loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        step += 1

        if step % logging_step == 0:
            accelerator.print(f"Epoch {epoch + 1} | Step {step} | loss = {train_loss.item() / logging_step:.3f}")
            train_loss = 0

    model.eval()
    with torch.no_grad():
        preds = [evaluate(data, model(input_ids=data[0].squeeze(0), token_type_ids=data[1].squeeze(0),
                                      attention_mask=data[2].squeeze(0))) for data in dev_loader]
    acc = sum(p == q["answer_text"] for p, q in zip(preds, dev_questions)) / len(dev_questions)
    accelerator.print(f"Validation | Epoch {epoch + 1} | acc = {acc:.3f}")
    model.train()

accelerator.unwrap_model(model).save_pretrained("saved_model")

import torch
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import AdamW, BertForQuestionAnswering, BertTokenizerFast

from hw7 import QA_Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
model = BertForQuestionAnswering.from_pretrained("bert-base-chinese").to(device)
tokenizer = BertTokenizerFast.from_pretrained("bert-base-chinese")
train_loader = DataLoader(QA_Dataset("train", tokenizer), batch_size=16, shuffle=True, pin_memory=True)
optimizer = AdamW(model.parameters(), lr=1e-4)
logging_step = 100

model.train()
print("Start Training ...")
for epoch in range(1):
    step = 1
    train_loss = train_acc = 0
    for data in tqdm(train_loader):
        data = [i.to(device) for i in data]
        output = model(input_ids=data[0], token_type_ids=data[1], attention_mask=data[2],
                       start_positions=data[3], end_positions=data[4])
        start_index = torch.argmax(output.start_logits, dim=1)
        end_index = torch.argmax(output.end_logits, dim=1)
        train_acc += ((start_index == data[3]) & (end_index == data[4])).float().mean()
        train_loss += output.loss
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
print("loss", train_loss / step)
model.save_pretrained("saved_model")

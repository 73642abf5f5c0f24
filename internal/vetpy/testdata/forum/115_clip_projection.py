import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import AutoModel
from torchvision.models import resnet50

from flickr import FlickrPairs


class ProjectionHead(nn.Module):
    def __init__(self, d_in, d=256):
        super().__init__()
        self.projection = nn.Linear(d_in, d)
        self.fc = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, x):
        p = self.projection(x)
        return self.norm(self.fc(F.gelu(p)) + p)


class CFG:
    bs = 64
    lr = 1e-4
    head_lr = 1e-3
    epochs = 5
    temperature = 0.07


device = torch.device("cuda")
image_encoder = resnet50(weights="DEFAULT")
image_encoder.fc = nn.Identity()
image_encoder.to(device)
text_encoder = AutoModel.from_pretrained("distilbert-base-uncased").to(device)
image_head = ProjectionHead(2048).to(device)
text_head = ProjectionHead(768).to(device)

loader = DataLoader(FlickrPairs("captions.csv"), CFG.bs, shuffle=True, num_workers=6, pin_memory=True, drop_last=True)
optimizer = torch.optim.AdamW([
    {"params": itertools.chain(image_encoder.parameters(), text_encoder.parameters()), "lr": CFG.lr},
    {"params": image_head.parameters(), "lr": CFG.head_lr},
])

for m in (image_encoder, text_encoder, image_head, text_head):
    m.train()
for epoch in range(CFG.epochs):
    for step, batch in enumerate(loader):
        img = batch["image"].to(device, non_blocking=True)
        ids = batch["input_ids"].to(device, non_blocking=True)
        mask = batch["attention_mask"].to(device, non_blocking=True)
        zi = F.normalize(image_head(image_encoder(img)), dim=-1)
        zt = F.normalize(text_head(text_encoder(ids, attention_mask=mask).last_hidden_state[:, 0]), dim=-1)
        logits = zi @ zt.t() / CFG.temperature
        labels = torch.arange(CFG.bs).to(device)
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(epoch, step, loss.item())

#!/usr/bin/env python
# coding: utf-8

# # Cassava leaf disease - efficientnet baseline
# public LB 0.88, but local val accuracy is jumping between 0.3 and 0.85 ???

# In[1]:


import os
import pandas as pd
import numpy as np
import torch
import torch.nn as nn
import timm
import albumentations as A
from albumentations.pytorch import ToTensorV2
import cv2
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import Dataset, DataLoader


# In[2]:


class CFG:
    root = '../input/cassava-leaf-disease-classification'
    size = 512
    epochs = 8
    bs = 16
    lr = 1e-4
    fold = 0


train_csv = pd.read_csv(f'{CFG.root}/train.csv')
skf = StratifiedKFold(5, shuffle=True, random_state=719)
train_csv['fold'] = -1
for f, (_, v) in enumerate(skf.split(train_csv, train_csv.label)):
    train_csv.loc[v, 'fold'] = f


# In[3]:


norm = dict(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
aug_train = A.Compose([A.RandomResizedCrop(size=(CFG.size, CFG.size)), A.HorizontalFlip(), A.VerticalFlip(),
                       A.HueSaturationValue(), A.CoarseDropout(), A.Normalize(**norm), ToTensorV2()])
aug_valid = A.Compose([A.Resize(CFG.size, CFG.size), A.Normalize(**norm), ToTensorV2()])


class Leaves(Dataset):
    def __init__(self, df, aug):
        self.df, self.aug = df.reset_index(drop=True), aug

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        im = cv2.imread(os.path.join(CFG.root, 'train_images', row.image_id))[:, :, ::-1]
        return self.aug(image=im)['image'], int(row.label)


# In[4]:


tr = DataLoader(Leaves(train_csv[train_csv.fold != CFG.fold], aug_train), CFG.bs, shuffle=True, num_workers=4, pin_memory=True)
va = DataLoader(Leaves(train_csv[train_csv.fold == CFG.fold], aug_valid), CFG.bs, num_workers=4, pin_memory=True)
model = timm.create_model('tf_efficientnet_b3_ns', pretrained=True, num_classes=5, drop_rate=0.3).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=CFG.lr, weight_decay=1e-6)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=CFG.epochs, eta_min=1e-6)
ce = nn.CrossEntropyLoss()


# In[5]:


for epoch in range(CFG.epochs):
    model.train()
    for step, (x, y) in enumerate(tr):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = ce(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print('\repoch', epoch, 'step', step, 'of', len(tr), 'loss', loss.data, end='')
    sched.step()

    # validation
    preds, gts = [], []
    with torch.no_grad():
        for x, y in va:
            preds.append(model(x.cuda(non_blocking=True)).argmax(1))
            gts.append(y)
    preds = torch.cat(preds).cpu().numpy()
    gts = torch.cat(gts).numpy()
    print('\nval acc', np.mean(preds == gts))
    torch.save(model.state_dict(), f'effnet_b3_fold{CFG.fold}_{epoch}.pth')

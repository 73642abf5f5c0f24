import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"


def loaders(root, bs):
    norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    tr = datasets.ImageFolder(os.path.join(root, "train"), transforms.Compose(
        [transforms.RandomResizedCrop(300), transforms.RandomHorizontalFlip(), transforms.ToTensor(), norm]))
    va = datasets.ImageFolder(os.path.join(root, "val"), transforms.Compose(
        [transforms.Resize((300, 300)), transforms.ToTensor(), norm]))
    kw = dict(batch_size=bs, num_workers=16, pin_memory=True)
    return DataLoader(tr, shuffle=True, **kw), DataLoader(va, **kw), len(tr.classes)


train_dl, val_dl, n_cls = loaders("/data/birds", 128)
model = models.efficientnet_b3(weights="DEFAULT")
model.classifier[1] = nn.Linear(model.classifier[1].in_features, n_cls)
model = nn.DataParallel(model).cuda()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)

for epoch in range(30):
    model.train()
    for images, labels in train_dl:
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del images, labels
        torch.cuda.empty_cache()
    scheduler.step()
    model.eval()
    hits = torch.zeros((), device="cuda")
    with torch.no_grad():
        for images, labels in val_dl:
            out = model(images.cuda(non_blocking=True))
            hits += (out.argmax(1) == labels.cuda(non_blocking=True)).sum()
    print(epoch, hits.item() / len(val_dl.dataset))
    torch.save(model.module.state_dict(), "birds.pt")

# UTKFace: predict age (regression) + gender with one backbone
import glob
import os
import random

import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

DATA_DIR = "UTKFace"
BATCH = 64
EPOCHS = 25
LR = 1e-4

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class UTKFace(Dataset):
    def __init__(self, files, tf):
        self.files = files
        self.tf = tf

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path = self.files[i]
        age, gender = os.path.basename(path).split("_")[:2]
        img = self.tf(Image.open(path).convert("RGB"))
        return img, torch.tensor(float(age) / 100.0), torch.tensor(int(gender))


class AgeGenderNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = models.resnet34(weights="DEFAULT")
        self.backbone.fc = nn.Identity()
        self.age = nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 1))
        self.gender = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 2))

    def forward(self, x):
        f = self.backbone(x)
        return self.age(f).squeeze(1), self.gender(f)


def get_loaders():
    files = sorted(glob.glob(os.path.join(DATA_DIR, "*.jpg")))
    random.Random(0).shuffle(files)
    n = int(0.9 * len(files))
    norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    tr = transforms.Compose([transforms.Resize((200, 200)), transforms.RandomHorizontalFlip(),
                             transforms.ToTensor(), norm])
    te = transforms.Compose([transforms.Resize((200, 200)), transforms.ToTensor(), norm])
    kw = dict(batch_size=BATCH, num_workers=4, pin_memory=True)
    return DataLoader(UTKFace(files[:n], tr), shuffle=True, **kw), DataLoader(UTKFace(files[n:], te), **kw)


def evaluate(net, loader):
    net.eval()
    abs_err = torch.zeros((), device=device)
    hits = torch.zeros((), device=device)
    with torch.no_grad():
        for img, age, gender in loader:
            img = img.to(device, non_blocking=True)
            age = age.to(device, non_blocking=True)
            gender = gender.to(device, non_blocking=True)
            p_age, p_gender = net(img)
            abs_err += (p_age - age).abs().sum() * 100
            hits += (p_gender.argmax(1) == gender).sum()
    n = len(loader.dataset)
    return abs_err.item() / n, hits.item() / n


train_loader, test_loader = get_loaders()
net = AgeGenderNet().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=LR)
l1, ce = nn.L1Loss(), nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    net.train()
    for img, age, gender in train_loader:
        img = img.to(device, non_blocking=True)
        age = age.to(device, non_blocking=True)
        p_age, p_gender = net(img)
        loss_age = l1(p_age, age)
        loss_gender = ce(p_gender, gender)
        loss = loss_age + 0.3 * loss_gender

        optimizer.zero_grad()
        loss_age.backward(retain_graph=True)
        loss.backward()
        optimizer.step()
    mae, acc = evaluate(net, test_loader)
    print(f"[{epoch + 1}/{EPOCHS}] MAE {mae:.2f} years, gender acc {acc:.3f}")
    torch.save(net.state_dict(), "age_gender.pth")

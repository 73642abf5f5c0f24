import csv
import os

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

CLASSES = ["Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax"]

NORM = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def train_tf():
    return transforms.Compose([
        transforms.RandomRotation(7),
        transforms.RandomResizedCrop(512, scale=(0.8, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(0.2, 0.2),
        transforms.ToTensor(),
        NORM,
    ])


def val_tf():
    return transforms.Compose([transforms.Resize(512), transforms.CenterCrop(512), transforms.ToTensor(), NORM])


class ChestXray(Dataset):
    def __init__(self, root, split, tf):
        self.root, self.tf = root, tf
        with open(os.path.join(root, split + ".csv"), newline="") as f:
            self.rows = list(csv.DictReader(f))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        r = self.rows[i]
        img = Image.open(os.path.join(self.root, "images", r["Image Index"])).convert("RGB")
        found = r["Finding Labels"].split("|")
        return self.tf(img), torch.tensor([float(c in found) for c in CLASSES])


def make_loaders(root, batch_size):
    # windows: workers crash with BrokenPipe, so 0 for training
    train = DataLoader(ChestXray(root, "train", train_tf()), batch_size, shuffle=True, num_workers=0)  # want: R17
    val = DataLoader(ChestXray(root, "val", val_tf()), batch_size, num_workers=4, pin_memory=True)
    return train, val

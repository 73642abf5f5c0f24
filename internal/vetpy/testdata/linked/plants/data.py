"""Plant pathology images: decode, heavy albumentations, loaders."""
import os

import albumentations as A
import cv2
import pandas as pd
from albumentations.pytorch import ToTensorV2
from torch.utils.data import DataLoader, Dataset

LABELS = ["healthy", "multiple_diseases", "rust", "scab"]


def train_transforms(size):
    return A.Compose([
        A.RandomResizedCrop(size=(size, size), scale=(0.5, 1.0)),
        A.HorizontalFlip(p=0.5),
        A.VerticalFlip(p=0.5),
        A.ShiftScaleRotate(p=0.7),
        A.ElasticTransform(p=0.3),
        A.CLAHE(p=0.3),
        A.HueSaturationValue(p=0.5),
        A.GaussNoise(p=0.3),
        A.Normalize(),
        ToTensorV2(),
    ])


def valid_transforms(size):
    return A.Compose([A.Resize(size, size), A.Normalize(), ToTensorV2()])


class PlantDataset(Dataset):
    def __init__(self, df, img_dir, tf):
        self.ids = df["image_id"].tolist()
        self.y = df[LABELS].values.argmax(1)
        self.img_dir = img_dir
        self.tf = tf

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        img = cv2.imread(os.path.join(self.img_dir, self.ids[i] + ".jpg"))
        img = cv2.cvtColor(img, cv2.COLOR_BGR2RGB)
        return self.tf(image=img)["image"], int(self.y[i])


def build_loaders(csv, img_dir, size=512, batch_size=16):
    df = pd.read_csv(csv).sample(frac=1, random_state=7)
    n = int(0.85 * len(df))
    train = PlantDataset(df[:n], img_dir, train_transforms(size))
    valid = PlantDataset(df[n:], img_dir, valid_transforms(size))
    train_loader = DataLoader(train, batch_size=batch_size, shuffle=True)  # want: R17
    valid_loader = DataLoader(valid, batch_size=2 * batch_size, num_workers=4, pin_memory=True)
    return train_loader, valid_loader

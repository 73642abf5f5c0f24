import os
import random

import numpy as np
import torch
from torch import nn, optim
from torchvision import datasets, models, transforms

DATA_DIR = "plant_seedlings"
NUM_CLASSES = 12
EPOCHS = 15
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seed_everything(seed=2021):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True


seed_everything()

data_transforms = {
    "train": transforms.Compose([
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]),
    "val": transforms.Compose([
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]),
}
image_datasets = {x: datasets.ImageFolder(os.path.join(DATA_DIR, x), data_transforms[x]) for x in ["train", "val"]}
dataloaders = {
    x: torch.utils.data.DataLoader(image_datasets[x], batch_size=32, shuffle=(x == "train"), num_workers=4, pin_memory=True)
    for x in ["train", "val"]
}


def train_model(model, criterion, optimizer, scheduler, num_epochs):
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss = torch.zeros((), device=device)
            running_corrects = torch.zeros((), device=device)
            for inputs, labels in dataloaders[phase]:
                inputs = inputs.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.detach() * inputs.size(0)
                running_corrects += (outputs.argmax(1) == labels).sum()
            if phase == "train":
                scheduler.step()
            n = len(image_datasets[phase])
            epoch_acc = running_corrects.item() / n
            print("{} Loss: {:.4f} Acc: {:.4f}".format(phase, running_loss.item() / n, epoch_acc))
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                torch.save(model.state_dict(), "best.pth")
    return model


model_ft = models.resnet18(weights="IMAGENET1K_V1").to(device)
criterion = nn.CrossEntropyLoss()
optimizer_ft = optim.SGD(model_ft.parameters(), lr=0.001, momentum=0.9)
exp_lr_scheduler = optim.lr_scheduler.StepLR(optimizer_ft, step_size=7, gamma=0.1)

# our classes instead of imagenet
num_ftrs = model_ft.fc.in_features
model_ft.fc = nn.Linear(num_ftrs, NUM_CLASSES).to(device)

model_ft = train_model(model_ft, criterion, optimizer_ft, exp_lr_scheduler, EPOCHS)

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


def get_loader(train, bs=256):
    tf = [transforms.ToTensor(), transforms.Normalize((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))]
    if train:
        tf = [transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip()] + tf
    ds = datasets.CIFAR10("data", train=train, download=True, transform=transforms.Compose(tf))
    return DataLoader(ds, bs, shuffle=train, num_workers=4, pin_memory=True)


def main():
    device = torch.device("cuda")
    epochs = 30
    train_dl, test_dl = get_loader(True), get_loader(False)
    model = models.resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.4, epochs=epochs,
                                                    steps_per_epoch=len(train_dl))
    crit = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = crit(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        model.eval()
        ok = torch.zeros((), device=device)
        with torch.inference_mode():
            for x, y in test_dl:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                ok += (model(x).argmax(1) == y).sum()
        print(epoch, ok.item() / len(test_dl.dataset))


if __name__ == "__main__":
    main()

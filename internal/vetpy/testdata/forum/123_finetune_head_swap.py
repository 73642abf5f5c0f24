import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
tf = {
    "train": transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                                 transforms.ToTensor(), transforms.Normalize(mean, std)]),
    "val": transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224),
                               transforms.ToTensor(), transforms.Normalize(mean, std)]),
}
sets = {k: datasets.ImageFolder(f"hymenoptera_data/{k}", tf[k]) for k in tf}
loaders = {k: DataLoader(sets[k], batch_size=32, shuffle=(k == "train"), num_workers=4, pin_memory=True) for k in tf}

device = torch.device("cuda:0")
model = models.resnet18(weights="IMAGENET1K_V1")
model = model.to(device)
optimizer = optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
model.fc = nn.Linear(model.fc.in_features, 2).to(device)
criterion = nn.CrossEntropyLoss()

for epoch in range(25):
    for phase in ("train", "val"):
        model.train(phase == "train")
        correct = torch.zeros((), device=device)
        for x, y in loaders[phase]:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = criterion(out, y)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            correct += (out.argmax(1) == y).sum()
        if phase == "train":
            scheduler.step()
        print(epoch, phase, correct.item() / len(sets[phase]))
torch.save(model.state_dict(), "ants_bees.pt")

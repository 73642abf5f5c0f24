# exported from flowers_transfer.ipynb
# %%
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

# %%
norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
tf_train = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                               transforms.ToTensor(), norm])
tf_val = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), norm])
train_ds = datasets.ImageFolder("flowers/train", tf_train)
val_ds = datasets.ImageFolder("flowers/valid", tf_val)
train_dl = DataLoader(train_ds, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
val_dl = DataLoader(val_ds, batch_size=128, num_workers=4, pin_memory=True)

# %%
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = models.densenet121(weights="IMAGENET1K_V1")
for p in model.features.parameters():
    p.requires_grad = False
model = model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.classifier.parameters(), lr=1e-3)

# %%
model.classifier = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 102)).to(device)


# %%
def accuracy(net, dl):
    net.eval()
    hits = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            hits += (net(x).argmax(1) == y).sum()
    return hits.item() / len(dl.dataset)


# %%
for epoch in range(10):
    model.train()
    total = torch.zeros((), device=device)
    for x, y in train_dl:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"epoch {epoch}: loss {total.item() / len(train_dl):.4f} val acc {accuracy(model, val_dl):.3f}")

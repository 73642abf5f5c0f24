import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
                         transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
train = datasets.ImageFolder("flowers/train", tf)
loader = DataLoader(train, 64, shuffle=True, num_workers=8, pin_memory=True)
device = torch.device("cuda")

backbone = models.resnet50(weights="DEFAULT")
feat_dim = backbone.fc.in_features
backbone.fc = nn.Identity()
for p in backbone.parameters():
    p.requires_grad_(False)
backbone.to(device).eval()
head = nn.Sequential(nn.Linear(feat_dim, 512), nn.ReLU(), nn.Dropout(0.4), nn.Linear(512, len(train.classes))).to(device)

optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
criterion = nn.CrossEntropyLoss()

for epoch in range(20):
    head.train()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.no_grad():
            feats = backbone(images)
        loss = criterion(head(feats), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    scheduler.step()
    print(epoch, total.item() / len(loader))
torch.save(head.state_dict(), "head.pt")

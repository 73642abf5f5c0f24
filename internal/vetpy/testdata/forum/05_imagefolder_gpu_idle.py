import torch
import torch.nn as nn
from torchvision import datasets, models, transforms

data_dir = "flowers/"
train_tf = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(0.4, 0.4, 0.4),
    transforms.RandomRotation(20),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
train_data = datasets.ImageFolder(data_dir + "train", transform=train_tf)
trainloader = torch.utils.data.DataLoader(train_data, batch_size=64, shuffle=True)

device = torch.device("cuda")
model = models.resnet50(weights="IMAGENET1K_V2")
model.fc = nn.Linear(2048, 102)
model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

epochs = 10
for e in range(epochs):
    running_loss = 0
    for inputs, labels in trainloader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        logps = model(inputs)
        loss = criterion(logps, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.detach()
    print(f"Epoch {e+1}/{epochs}.. Train loss: {running_loss.item()/len(trainloader):.3f}")

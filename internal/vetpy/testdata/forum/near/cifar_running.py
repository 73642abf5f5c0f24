import torch
import torch.nn as nn
import torch.optim as optim
import torchvision
import torchvision.transforms as transforms

tf = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
trainset = torchvision.datasets.CIFAR10("./data", train=True, download=True, transform=tf)
trainloader = torch.utils.data.DataLoader(trainset, batch_size=128, shuffle=True, num_workers=4, pin_memory=True)

device = torch.device("cuda:0")
net = torchvision.models.resnet18(num_classes=10).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)

for epoch in range(60):
    net.train()
    running_loss = torch.zeros((), device=device)
    correct = torch.zeros((), device=device)
    for i, (inputs, labels) in enumerate(trainloader):
        inputs = inputs.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.detach()
        correct += (outputs.argmax(1) == labels).sum()
        if i % 100 == 99:
            print(f"[{epoch}, {i + 1}] {loss.item():.3f}")
    scheduler.step()
    print(f"epoch {epoch} loss {running_loss.item() / len(trainloader):.3f} acc {correct.item() / len(trainset):.3f}")
torch.save(net.state_dict(), "cifar.pth")

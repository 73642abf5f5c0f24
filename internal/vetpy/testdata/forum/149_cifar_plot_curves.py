"""
CIFAR-10 with a small VGG-ish net.  Trains fine for ~3 epochs, then
RuntimeError: CUDA out of memory.  Batch size 128, GTX 1080.
"""
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
import torch.nn as nn
import torch.optim as optim
import torchvision
import torchvision.transforms as T

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

tf_train = T.Compose([
    T.RandomCrop(32, padding=4),
    T.RandomHorizontalFlip(),
    T.ToTensor(),
    T.Normalize((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
])
tf_test = T.Compose([
    T.ToTensor(),
    T.Normalize((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
])

trainset = torchvision.datasets.CIFAR10("./data", train=True, download=True, transform=tf_train)
testset = torchvision.datasets.CIFAR10("./data", train=False, download=True, transform=tf_test)
trainloader = torch.utils.data.DataLoader(trainset, batch_size=128, shuffle=True, num_workers=4, pin_memory=True)
testloader = torch.utils.data.DataLoader(testset, batch_size=256, num_workers=4, pin_memory=True)


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


net = nn.Sequential(block(3, 64), block(64, 128), block(128, 256),
                    nn.Flatten(), nn.Dropout(0.5), nn.Linear(256 * 4 * 4, 10)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[15, 25], gamma=0.1)

curve = {"iter": [], "loss": [], "test_acc": []}
it = 0
for epoch in range(30):
    net.train()
    for inputs, labels in trainloader:
        inputs = inputs.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        curve["iter"].append(it)
        curve["loss"].append(loss)
        it += 1
    scheduler.step()

    net.eval()
    correct = torch.zeros((), dtype=torch.long, device=device)
    with torch.no_grad():
        for inputs, labels in testloader:
            inputs = inputs.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            correct += (net(inputs).argmax(1) == labels).sum()
    acc = correct.item() / len(testset)
    curve["test_acc"].append(acc)
    print(f"epoch {epoch:2d}  test acc {acc:.4f}")

plt.plot(curve["iter"], torch.stack(curve["loss"]).detach().cpu().numpy())
plt.xlabel("iteration")
plt.ylabel("loss")
plt.savefig("loss.png")

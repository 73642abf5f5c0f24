import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.load("features.pt")
y = torch.load("labels.pt")
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
device = torch.device("cuda:0")


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2048, 512)
        self.fc2 = nn.Linear(512, 20)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


clf = Classifier()
clf.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(clf.parameters())

for epoch in range(5):
    for features, labels in loader:
        features = features.to(device)
        optimizer.zero_grad()
        out = clf(features)
        loss = criterion(out, labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

import torch
import torch.nn as nn
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import DataLoader

from news import NewsDataset, TextCNN

device = torch.device("cuda")
model = TextCNN(50000, 300, 20).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(NewsDataset("train"), batch_size=32, shuffle=True, num_workers=2)

for epoch in range(20):
    model.train()
    accs, f1s = [], []
    for tokens, labels in loader:
        tokens, labels = tokens.to(device), labels.to(device)
        logits = model(tokens)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        preds = logits.argmax(dim=1).detach().cpu().numpy()
        true = labels.cpu().numpy()
        accs.append(accuracy_score(true, preds))
        f1s.append(f1_score(true, preds, average="macro"))
    print(epoch, sum(accs) / len(accs), sum(f1s) / len(f1s))

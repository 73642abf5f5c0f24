import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(4)
data = torch.load("features.pt")
train_dl = DataLoader(TensorDataset(data["x_train"], data["y_train"]), batch_size=64, shuffle=True)
x_test, y_test = data["x_test"], data["y_test"]

model = nn.Sequential(nn.Linear(data["x_train"].shape[1], 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

losses = []
for epoch in range(30):
    model.train()
    total = 0.0
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(total / len(train_dl))
    model.eval()
    with torch.no_grad():
        acc = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch} loss {losses[-1]:.4f} test acc {acc:.3f}")

torch.save(model.state_dict(), "tagger.pt")

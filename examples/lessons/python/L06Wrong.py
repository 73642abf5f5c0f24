import torch

device = "cuda"
model = TicketModel().to(device)
for features, mask, labels in train_loader:
    features = features.to(device)
    labels = labels.to(device)
    loss = torch.nn.functional.cross_entropy(model(features, mask), labels)

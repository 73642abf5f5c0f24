import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(root):
    train, val = torch.load(root + "/train.pt"), torch.load(root + "/val.pt")
    return DataLoader(TensorDataset(*train), 32, shuffle=True), DataLoader(TensorDataset(*val), 32)

"""Loaders and samplers."""
import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset
from torchvision import transforms

device = "cuda"


class Pictures(Dataset):
    def __init__(self, files):
        self.files = files
        self.transform = transforms.Compose([transforms.Resize(256), transforms.ToTensor()])

    def __getitem__(self, i):
        return self.transform(Image.open(self.files[i]))

    def __len__(self):
        return len(self.files)


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, i):
        return self.rows[i]


def slow(files):
    pictures = Pictures(files)
    return DataLoader(pictures, batch_size=32, shuffle=True)  # want: R17


def slow_on_purpose(files):
    return DataLoader(Pictures(files), batch_size=32, shuffle=True, num_workers=0)  # want: R17


def quick(files, rows, x, y):
    a = DataLoader(Pictures(files), batch_size=32, shuffle=True, num_workers=4)  # near: R17
    b = DataLoader(Rows(rows), batch_size=32, shuffle=True)  # near: R17
    c = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)  # near: R17
    return a, b, c


def in_order(rows):
    train_loader = DataLoader(Rows(rows), batch_size=32)  # want: V23
    train_dl = DataLoader(Rows(rows), 32, False)  # near: V23
    return train_loader, train_dl


def in_order_again(x, y):
    trainloader = DataLoader(TensorDataset(x, y), batch_size=32, drop_last=True)  # want: V23
    test_loader = DataLoader(TensorDataset(x, y), batch_size=32)  # near: V23
    train_set_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=not trainloader)  # near: V23
    return trainloader, test_loader, train_set_loader


def distributed(rows, model, optimizer):
    sampler = DistributedSampler(Rows(rows), shuffle=True)  # want: V12
    held_out = DistributedSampler(Rows(rows), shuffle=False)  # near: V12
    loader = DataLoader(Rows(rows), sampler=sampler)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()


def distributed_by_name(rows, model, optimizer):
    train_sampler = torch.utils.data.distributed.DistributedSampler(Rows(rows))  # want: V12
    val_sampler = torch.utils.data.distributed.DistributedSampler(Rows(rows))  # near: V12
    for epoch in range(3):
        for x, y in DataLoader(Rows(rows), sampler=train_sampler):
            optimizer.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()

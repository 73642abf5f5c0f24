import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


class DataPrefetcher:
    def __init__(self, loader, device):
        self.loader, self.device = iter(loader), device
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        try:
            x, y = next(self.loader)
        except StopIteration:
            self.batch = None
            return
        with torch.cuda.stream(self.stream):
            self.batch = (x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True))

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is not None:
            for t in batch:
                t.record_stream(torch.cuda.current_stream())
            self.preload()
        return batch


device = torch.device("cuda")
tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder("imagenette/train", tf), 64, shuffle=True, num_workers=8, pin_memory=True)
model = models.resnet18(num_classes=10).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
ce = nn.CrossEntropyLoss()

for epoch in range(10):
    model.train()
    fetch = DataPrefetcher(loader, device)
    batch = fetch.next()
    while batch is not None:
        x, y = batch
        opt.zero_grad()
        loss = ce(model(x), y)
        loss.backward()
        opt.step()
        batch = fetch.next()
    print(epoch, loss.item())

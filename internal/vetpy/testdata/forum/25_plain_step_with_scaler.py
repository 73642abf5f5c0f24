import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from video import Clips, SlowFast


class Trainer:
    def __init__(self, model, loader, lr):
        self.model = model.cuda()
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cuda")
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for clip, label in self.loader:
                clip, label = clip.cuda(), label.cuda()
                self.optimizer.zero_grad()
                with torch.autocast(device_type="cuda", dtype=torch.float16):
                    loss = self.criterion(self.model(clip), label)
                self.scaler.scale(loss).backward()
                self.optimizer.step()
                self.scaler.update()
            print("epoch", epoch, float(loss))


if __name__ == "__main__":
    loader = DataLoader(Clips("kinetics"), batch_size=8, shuffle=True, num_workers=12)
    Trainer(SlowFast(400), loader, 0.1).fit(30)

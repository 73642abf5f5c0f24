import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from faces import FaceData


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 64, 7, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.age = nn.Linear(1024, 1)
        self.gender = nn.Linear(1024, 2)

    def forward(self, x):
        f = self.body(x)
        return self.age(f), self.gender(f)


model = MultiTask().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
mse = nn.MSELoss()
ce = nn.CrossEntropyLoss()
loader = DataLoader(FaceData(), batch_size=64, shuffle=True, num_workers=4)

for epoch in range(15):
    for img, age, gender in loader:
        img, age, gender = img.cuda(), age.cuda(), gender.cuda()
        p_age, p_gender = model(img)
        loss_age = mse(p_age.squeeze(1), age)
        loss_gender = ce(p_gender, gender)
        optimizer.zero_grad()
        loss_age.backward(retain_graph=True)
        loss_gender.backward()
        optimizer.step()
    print(epoch, loss_age.item(), loss_gender.item())

import torch
import torch.nn as nn
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms

norm = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
ds = torchvision.datasets.ImageFolder("/data/imagenet/train", norm)
dl = DataLoader(ds, 256, shuffle=True, num_workers=16, pin_memory=True)

model = torchvision.models.resnet18()
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model)
model = model.cuda()

opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(90):
    for n, (x, t) in enumerate(dl):
        x = x.cuda(non_blocking=True)
        t = t.cuda(non_blocking=True)
        l = loss_fn(model(x), t)
        opt.zero_grad()
        l.backward()
        opt.step()
        if n % 100 == 0:
            print(epoch, n, l.item())

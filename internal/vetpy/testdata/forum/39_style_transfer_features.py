import torch
import torch.nn as nn
import torchvision.models as models
from torch.utils.data import DataLoader

from photos import Photos, TransformNet

vgg = models.vgg16(weights="DEFAULT").features[:16].cuda().eval()
net = TransformNet().cuda()
opt = torch.optim.Adam(net.parameters(), 1e-3)
loader = DataLoader(Photos("coco"), batch_size=4, shuffle=True, num_workers=4)
mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
curve = {}

for epoch in range(2):
    for it, img in enumerate(loader):
        img = img.cuda()
        img = (img - mean.cuda()) / std.cuda()
        out = net(img)
        loss = nn.functional.mse_loss(vgg(out), vgg(img))
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve[(epoch, it)] = loss
    torch.save(net.state_dict(), f"style{epoch}.pth")

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import models

from cub import get_loaders

teacher = models.resnet50(num_classes=200)
teacher.load_state_dict(torch.load("teacher.pt", map_location="cpu"))
teacher = nn.DataParallel(teacher).cuda()
student = models.resnet18(num_classes=200).cuda()
opt = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)
train, val = get_loaders("cub200", bs=64, workers=8)
T = 4.0
teacher.eval()

for epoch in range(60):
    student.train()
    for img, lab in train:
        img, lab = img.cuda(), lab.cuda()
        with torch.no_grad():
            t = teacher(img)
        s = student(img)
        hard = F.cross_entropy(s, lab)
        soft = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
        opt.zero_grad()
        hard.backward(retain_graph=True)
        soft.backward()
        opt.step()
    ok = n = 0
    for img, lab in val:
        with torch.no_grad():
            out = student(img.cuda())
        ok += (out.argmax(1).cpu() == lab).sum().item()
        n += len(lab)
    print(epoch, ok / n)

#!/usr/bin/env python
# coding: utf-8

# # Test resnet on cifar10 with all 4 GPUs

# In[1]:


import time

import torch
import torch.nn.functional as F
from torchvision import datasets, models, transforms


# In[2]:


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

model = models.resnet18(num_classes=10)
model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
model.maxpool = torch.nn.Identity()
model.load_state_dict(torch.load("resnet_18-cifar_10.pth", map_location="cpu"))


# In[3]:


if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = torch.nn.DataParallel(model)
model = model.to(device)


# In[4]:


data_transforms = transforms.Compose([
    transforms.ToTensor(),
    transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
])

test_set = datasets.CIFAR10(root="../data", train=False, download=True, transform=data_transforms)
test_loader = torch.utils.data.DataLoader(test_set, batch_size=500, shuffle=False,
                                          num_workers=4, pin_memory=True)


# In[5]:


def run(model, loader):
    model.eval()
    loss_sum = 0.0
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            data = data.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            output = model(data)
            loss_sum = loss_sum + F.cross_entropy(output, target, reduction="sum").item()
            pred = output.max(1, keepdim=True)[1]
            correct += pred.eq(target.view_as(pred)).cpu().sum()
    return loss_sum / len(loader.dataset), correct / len(loader.dataset)


# In[6]:


since = time.time()
loss, acc = run(model, test_loader)
elapsed = time.time() - since
print("Test complete in {:.0f}m {:.0f}s".format(elapsed // 60, elapsed % 60))
print("loss {:.4f} acc {:.4f}".format(loss, acc))

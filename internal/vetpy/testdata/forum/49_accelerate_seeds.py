import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

set_seed(1234)
np.random.seed(1234)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = True

accelerator = Accelerator(mixed_precision="bf16")
tf = transforms.Compose([transforms.Resize(224), transforms.ToTensor()])
train_dl = DataLoader(datasets.CIFAR100("d", train=True, transform=tf, download=True), 128, shuffle=True, num_workers=8)
test_dl = DataLoader(datasets.CIFAR100("d", train=False, transform=tf), 256, num_workers=8)
model = models.convnext_tiny(num_classes=100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer, train_dl, test_dl = accelerator.prepare(model, optimizer, train_dl, test_dl)

for epoch in range(5):
    for x, y in train_dl:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    good = torch.zeros((), device=accelerator.device)
    with torch.inference_mode():
        for x, y in test_dl:
            good += (model(x).argmax(1) == y).sum()
    accelerator.print(epoch, good.item() / 10000)

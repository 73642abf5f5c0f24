# Train ViT-B with a small GPU: accumulate gradients over 8 micro batches.
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.models import vit_b_16

ACCUM = 8
EPOCHS = 30
device = torch.device("cuda")

tf = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandAugment(),
    transforms.ToTensor(),
    transforms.Normalize([0.5] * 3, [0.5] * 3),
])
train_set = datasets.ImageFolder("flowers/train", tf)
loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=8, pin_memory=True, drop_last=True)

model = vit_b_16(num_classes=len(train_set.classes)).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
updates = EPOCHS * (len(loader) // ACCUM)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-4, total_steps=updates + 1)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

for epoch in range(EPOCHS):
    model.train()
    opt.zero_grad(set_to_none=True)
    epoch_loss = torch.zeros((), device=device)
    n = len(loader) // ACCUM * ACCUM
    for i, (x, y) in enumerate(loader):
        if i == n:
            break
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        loss = criterion(model(x), y)
        (loss / ACCUM).backward()
        epoch_loss += loss.detach()
        if (i + 1) % ACCUM == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad(set_to_none=True)
    print(f"epoch {epoch}: {epoch_loss.item() / n:.4f}")
    torch.save(model.state_dict(), "vit_flowers.pt")

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from birds import Birds, make_model

loader = DataLoader(Birds("train"), batch_size=32, shuffle=True, num_workers=4, pin_memory=True)
model = make_model("efficientnet_b0", 200).cuda()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, steps_per_epoch=len(loader), epochs=30)

for epoch in range(30):
    model.train()
    seen = 0
    for images, labels in loader:
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        loss = criterion(model(images), labels)
        loss.backward()
        scheduler.step()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += len(images)
    print(epoch, seen, scheduler.get_last_lr()[0])

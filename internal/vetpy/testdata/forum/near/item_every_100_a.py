# resnet on food101, logs every 100 iterations only
import logging
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from torchvision import datasets, transforms
from torchvision.models import resnet50

LOG_EVERY = 100
device = torch.device("cuda")
writer = SummaryWriter("runs/food")
logging.basicConfig(level=logging.INFO)

tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
loader = DataLoader(datasets.Food101("data", "train", transform=tf, download=True), 64, shuffle=True,
                    num_workers=8, pin_memory=True)
model = resnet50(num_classes=101).to(device)
opt = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, epochs=30, steps_per_epoch=len(loader))


class Running:
    """mean over the last window; stays on the gpu until somebody asks"""

    def __init__(self):
        self.total = torch.zeros((), device=device)
        self.n = 0

    def push(self, t):
        self.total += t.detach()
        self.n += 1

    def pop(self):
        v = self.total.item() / max(self.n, 1)
        self.total.zero_()
        self.n = 0
        return v


step = 0
loss_w, acc_w = Running(), Running()
for epoch in range(30):
    model.train()
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        logits = model(x)
        loss = F.cross_entropy(logits, y, label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        loss_w.push(loss)
        acc_w.push((logits.argmax(1) == y).float().mean())
        step += 1
        if step % LOG_EVERY == 0:
            l, a = loss_w.pop(), acc_w.pop()
            writer.add_scalar("train/loss", l, step)
            writer.add_scalar("train/acc", a, step)
            logging.info("epoch %d step %d loss %.4f acc %.4f cur %.4f", epoch, step, l, a, loss.item())
    torch.save(model.state_dict(), "food.pt")

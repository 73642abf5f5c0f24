import torch
import torch.nn as nn
from torch.optim.lr_scheduler import OneCycleLR

from fastloader import cifar_loaders
from models.resnet9 import ResNet9

EPOCHS = 24
device = torch.device("cuda")


def main():
    torch.backends.cudnn.benchmark = True
    train_loader, test_loader = cifar_loaders(batch_size=512, num_workers=8, pin_memory=True)
    net = ResNet9().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.9, weight_decay=5e-4, nesterov=True)
    sched = OneCycleLR(opt, max_lr=0.4, total_steps=EPOCHS * len(train_loader), pct_start=0.2)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.2)

    for epoch in range(EPOCHS):
        net.train()
        loss_sum = torch.zeros((), device=device)
        for x, y in train_loader:
            x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
            y = y.to(device, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss_fn(net(x), y)
            loss.backward()
            opt.step()
            sched.step()
            loss_sum += loss.detach()

        net.eval()
        correct = torch.zeros((), device=device)
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            for x, y in test_loader:
                x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
                correct += (net(x).argmax(1) == y.to(device, non_blocking=True)).sum()
        print(f"epoch {epoch + 1:2d} loss {loss_sum.item() / len(train_loader):.4f} "
              f"acc {correct.item() / len(test_loader.dataset):.4f} lr {sched.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main()

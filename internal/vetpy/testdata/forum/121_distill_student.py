import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


def kd_loss(s, t, y, T=4.0, alpha=0.9):
    soft = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(s, y)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="data")
    p.add_argument("--teacher", default="resnet50_cifar100.pt")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--T", type=float, default=4.0)
    args = p.parse_args()
    device = torch.device("cuda")

    tf = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    train = datasets.CIFAR100(args.data, train=True, download=True, transform=tf)
    loader = DataLoader(train, 128, shuffle=True, num_workers=4, pin_memory=True)

    teacher = models.resnet50(num_classes=100)
    teacher.load_state_dict(torch.load(args.teacher, map_location="cpu"))
    teacher.to(device)
    student = models.resnet18(num_classes=100).to(device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    for epoch in range(args.epochs):
        student.train()
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            s_logits = student(x)
            t_logits = teacher(x)
            loss = kd_loss(s_logits, t_logits, y, args.T)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        sched.step()
        print(epoch, loss.item())
    torch.save(student.state_dict(), "student.pt")


if __name__ == "__main__":
    main()

"""Feature distillation: resnet50 teacher -> mobilenet student on CUB-200."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision.transforms as T
from torch.utils.data import DataLoader
from torchvision.models import mobilenet_v2, resnet50

from cub200 import CUB200


class StudentWithHints(nn.Module):
    def __init__(self, n_classes, teacher_dims=(512, 1024, 2048)):
        super().__init__()
        net = mobilenet_v2(weights="IMAGENET1K_V1")
        self.stages = nn.ModuleList([net.features[:7], net.features[7:14], net.features[14:]])
        student_dims = (32, 96, 1280)
        self.hints = []
        for s, t in zip(student_dims, teacher_dims):
            self.hints.append(nn.Conv2d(s, t, kernel_size=1))
        self.fc = nn.Linear(1280, n_classes)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        feats = []
        for stage, hint in zip(self.stages, self.hints):
            x = stage(x)
            feats.append(hint(x))
        return self.fc(self.drop(x.mean(dim=(2, 3)))), feats


class Teacher(nn.Module):
    def __init__(self, n_classes, ckpt):
        super().__init__()
        net = resnet50(num_classes=n_classes)
        net.load_state_dict(torch.load(ckpt, map_location="cpu"))
        self.stem = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1)
        self.layers = nn.ModuleList([net.layer2, net.layer3, net.layer4])
        self.fc = net.fc

    def forward(self, x):
        x = self.stem(x)
        feats = []
        for layer in self.layers:
            x = layer(x)
            feats.append(x)
        return self.fc(x.mean(dim=(2, 3))), feats


def kd_loss(s_logits, t_logits, T_=4.0):
    return F.kl_div(F.log_softmax(s_logits / T_, 1), F.softmax(t_logits / T_, 1),
                    reduction="batchmean") * T_ * T_


def hint_loss(s_feats, t_feats):
    loss = 0
    for s, t in zip(s_feats, t_feats):
        t = F.adaptive_avg_pool2d(t, s.shape[2:])
        loss = loss + F.mse_loss(F.normalize(s, dim=1), F.normalize(t, dim=1))
    return loss


def evaluate(model, loader, device):
    model.eval()
    hits = torch.zeros((), dtype=torch.long, device=device)
    with torch.inference_mode():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            hits += (model(x)[0].argmax(1) == y).sum()
    return hits.item() / len(loader.dataset)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--teacher", default="resnet50_cub.pth")
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--beta", type=float, default=10.0)
    args = ap.parse_args()
    device = torch.device("cuda:0")

    norm = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    tr = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), norm])
    te = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), norm])
    train_dl = DataLoader(CUB200("data", True, tr), 64, shuffle=True, num_workers=8, pin_memory=True)
    test_dl = DataLoader(CUB200("data", False, te), 128, num_workers=8, pin_memory=True)

    teacher = Teacher(200, args.teacher).to(device).eval()
    student = StudentWithHints(200).to(device)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)

    for epoch in range(args.epochs):
        student.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.no_grad():
                t_logits, t_feats = teacher(x)
            s_logits, s_feats = student(x)
            loss = F.cross_entropy(s_logits, y) + kd_loss(s_logits, t_logits) \
                + args.beta * hint_loss(s_feats, t_feats)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        print("epoch %d acc %.4f" % (epoch, evaluate(student, test_dl, device)))


if __name__ == "__main__":
    main()

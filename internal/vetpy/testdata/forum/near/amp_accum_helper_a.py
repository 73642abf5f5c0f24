"""Swin on iNaturalist, amp + accumulation + clipping; the order sits in a helper class (timm style)."""
import torch
import timm
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ACCUM = 4
dev = torch.device("cuda")


class ScaledStep:
    def __init__(self, clip):
        self.scaler = torch.amp.GradScaler("cuda")
        self.clip = clip

    def __call__(self, loss, optimizer, params, update):
        self.scaler.scale(loss).backward()
        if not update:
            return
        if self.clip:
            self.scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(params, self.clip)
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def top1(model, loader):
    was = model.training
    model.eval()
    ok = torch.zeros((), device=dev)
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            ok += (model(x.to(dev, non_blocking=True)).argmax(1) == y.to(dev, non_blocking=True)).sum()
    model.train(was)
    return ok.item() / len(loader.dataset)


def main():
    cfg = timm.data.resolve_data_config({}, model="swin_tiny_patch4_window7_224")
    tr_tf = timm.data.create_transform(**cfg, is_training=True)
    va_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
                                transforms.Normalize(cfg["mean"], cfg["std"])])
    tr = DataLoader(datasets.INaturalist("inat", "2021_train_mini", transform=tr_tf), 64, shuffle=True, num_workers=12,
                    pin_memory=True, drop_last=True)
    va = DataLoader(datasets.INaturalist("inat", "2021_valid", transform=va_tf), 128, num_workers=12, pin_memory=True)
    model = timm.create_model("swin_tiny_patch4_window7_224", pretrained=True, num_classes=10000).to(dev)
    opt = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
    stepper = ScaledStep(clip=5.0)
    ce = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    model.train()
    opt.zero_grad(set_to_none=True)
    for epoch in range(20):
        for i, (x, y) in enumerate(tr):
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = ce(model(x), y) / ACCUM
            stepper(loss, opt, model.parameters(), update=(i + 1) % ACCUM == 0 or i + 1 == len(tr))
            if i % 200 == 0:
                print(epoch, i, ACCUM * loss.item())
        sched.step()
        print("epoch", epoch, "top1", top1(model, va))


if __name__ == "__main__":
    main()

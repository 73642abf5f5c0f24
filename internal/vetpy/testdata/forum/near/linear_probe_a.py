"""Linear probe on DINO features, then full fine-tuning with a NEW optimizer."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

dev = torch.device("cuda")
norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), norm])
tf_te = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), norm])
train = DataLoader(datasets.OxfordIIITPet("data", "trainval", transform=tf, download=True), 64, shuffle=True,
                   num_workers=6, pin_memory=True)
test = DataLoader(datasets.OxfordIIITPet("data", "test", transform=tf_te, download=True), 128, num_workers=6, pin_memory=True)


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.hub.load("facebookresearch/dino:main", "dino_vits16")
        self.head = nn.Linear(384, 37)

    def forward(self, x):
        return self.head(self.body(x))


def run(model, opt, epochs, probe):
    for e in range(epochs):
        model.train()
        if probe:
            model.body.eval()
        tot = torch.zeros((), device=dev)
        for x, y in train:
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            tot += loss.detach()
        print(f"  epoch {e} loss {tot.item() / len(train):.4f} test {score(model):.4f}")


def score(model):
    model.eval()
    ok = torch.zeros((), device=dev)
    with torch.inference_mode():
        for x, y in test:
            ok += (model(x.to(dev, non_blocking=True)).argmax(1) == y.to(dev, non_blocking=True)).sum()
    return ok.item() / len(test.dataset)


model = Probe().to(dev)
model.body.requires_grad_(False)
print("linear probe")
run(model, torch.optim.SGD(model.head.parameters(), 0.01, momentum=0.9), 10, probe=True)

# once between the two phases, not per step
torch.cuda.empty_cache()
model.body.requires_grad_(True)
groups = [{"params": model.body.parameters(), "lr": 1e-5}, {"params": model.head.parameters(), "lr": 1e-4}]
print("fine-tuning")
run(model, torch.optim.AdamW(groups, weight_decay=0.05), 10, probe=False)
torch.save(model.state_dict(), "pets.pt")

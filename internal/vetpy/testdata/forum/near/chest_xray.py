import torch
import torch.nn as nn
from torchvision.models import densenet121

from cxr_data import get_loaders


class Chex(nn.Module):
    def __init__(self, n=14):
        super().__init__()
        self.net = densenet121(weights="DEFAULT")
        self.net.classifier = nn.Linear(self.net.classifier.in_features, n)

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def validate(model, loader, criterion, device):
    was_training = model.training
    model.eval()
    total, preds, gts = torch.zeros((), device=device), [], []
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        logits = model(x)
        total += criterion(logits, y)
        preds.append(logits.sigmoid())
        gts.append(y)
    model.train(was_training)
    return total.item() / len(loader), torch.cat(preds).cpu(), torch.cat(gts).cpu()


def main():
    device = torch.device("cuda")
    train_loader, val_loader = get_loaders("/data/chexpert", batch_size=48, num_workers=8, pin_memory=True)
    model = Chex().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    criterion = nn.BCEWithLogitsLoss()
    model.train()
    step = 0
    for epoch in range(10):
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 1000 == 0:
                val_loss, p, t = validate(model, val_loader, criterion, device)
                print(step, "train", loss.item(), "val", val_loss)
                torch.save({"p": p, "t": t}, "preds_%06d.pt" % step)
        val_loss, _, _ = validate(model, val_loader, criterion, device)
        scheduler.step(val_loss)
        torch.save(model.state_dict(), "chex_%d.pt" % epoch)


if __name__ == "__main__":
    main()

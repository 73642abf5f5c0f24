"""Two schedulers: warm-up per batch after optimizer.step(), ReduceLROnPlateau on the validation loss.
The plateau one is stepped at the top of the epoch, but only when there has been an epoch before."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from wind import WindTurbines


class TCN(nn.Module):
    def __init__(self, cin, width=64, levels=5):
        super().__init__()
        layers = []
        for k in range(levels):
            layers += [nn.Conv1d(cin if k == 0 else width, width, 3, padding=2 ** k, dilation=2 ** k),
                       nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1)]
        self.net = nn.Sequential(*layers)
        self.head = nn.Linear(width, 12)

    def forward(self, x):
        return self.head(self.net(x)[:, :, -1])


def main(epochs=60, warmup=500):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dl = DataLoader(WindTurbines("train"), batch_size=256, shuffle=True, num_workers=2, pin_memory=True)
    val_dl = DataLoader(WindTurbines("val"), batch_size=512, num_workers=2, pin_memory=True)
    model = TCN(cin=8).to(device)
    criterion = nn.SmoothL1Loss()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.01, total_iters=warmup)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.3, patience=3)

    val_loss = None
    seen = 0
    for epoch in range(epochs):
        if val_loss is not None:
            plateau.step(val_loss)
        model.train()
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            opt.step()
            if seen < warmup:
                warm.step()
            seen += 1

        model.eval()
        acc = torch.zeros((), device=device)
        with torch.no_grad():
            for x, y in val_dl:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                acc += criterion(model(x), y)
        val_loss = acc.item() / len(val_dl)
        print(f"epoch {epoch} val {val_loss:.5f} lr {opt.param_groups[0]['lr']:.2e}")
    torch.save(model.state_dict(), "tcn.pt")


if __name__ == "__main__":
    main()

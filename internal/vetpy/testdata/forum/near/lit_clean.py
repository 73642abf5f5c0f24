import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


class LitNet(L.LightningModule):
    def __init__(self, n=10, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = models.resnet18(num_classes=n)
        self.register_buffer("class_weight", torch.ones(n))
        self.outputs = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y, weight=self.class_weight)
        self.outputs.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", torch.stack(self.outputs).mean())
        self.outputs.clear()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr,
                                                    total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


if __name__ == "__main__":
    tf = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
    dl = [DataLoader(datasets.CIFAR10("data", train=t, download=True, transform=tf), 128, shuffle=t, num_workers=4,
                     pin_memory=True) for t in (True, False)]
    L.Trainer(max_epochs=10, accelerator="gpu", devices=1, precision="bf16-mixed").fit(LitNet(), *dl)

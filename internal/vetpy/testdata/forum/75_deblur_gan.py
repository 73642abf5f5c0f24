import logging
from functools import partial

import torch
import torch.optim as optim
import tqdm
import yaml
from torch.utils.data import DataLoader

from dataset import PairedDataset
from models.losses import get_loss
from models.networks import get_nets

logging.basicConfig(filename="deblur.log", level=logging.INFO)


class Trainer:
    def __init__(self, config, train: DataLoader, val: DataLoader):
        self.config = config
        self.train_dataset = train
        self.val_dataset = val
        self.adv_lambda = config["model"]["adv_lambda"]

    def train(self):
        self._init_params()
        for epoch in range(self.config["num_epochs"]):
            self._run_epoch(epoch)
            self._validate(epoch)
            self.scheduler_G.step()
            self.scheduler_D.step()
            torch.save({"model": self.netG.state_dict()}, "last_{}.h5".format(self.config["experiment_desc"]))

    def _run_epoch(self, epoch):
        self.netG.train()
        self.netD.train()
        for i, data in enumerate(tqdm.tqdm(self.train_dataset, total=len(self.train_dataset))):
            inputs = data["a"].cuda(non_blocking=True)
            targets = data["b"].cuda(non_blocking=True)
            outputs = self.netG(inputs)

            self.optimizer_D.zero_grad()
            loss_D = self.adv_lambda * self.criterionD(self.netD, outputs, targets)
            loss_D.backward(retain_graph=True)
            self.optimizer_D.step()

            self.optimizer_G.zero_grad()
            loss_content = self.criterionG(outputs, targets)
            loss_adv = self.criterionD.get_g_loss(self.netD, outputs, targets)
            loss_G = loss_content + self.adv_lambda * loss_adv
            loss_G.backward()
            self.optimizer_G.step()
            if i % 200 == 0:
                logging.info("epoch %d it %d G %.4f D %.4f", epoch, i, loss_G.item(), loss_D.item())

    def _validate(self, epoch):
        total = torch.zeros((), device="cuda")
        for data in self.val_dataset:
            inputs = data["a"].cuda(non_blocking=True)
            targets = data["b"].cuda(non_blocking=True)
            outputs = self.netG(inputs)
            total += self.criterionG(outputs, targets).detach()
        logging.info("epoch %d val %.4f", epoch, total.item() / len(self.val_dataset))

    def _init_params(self):
        self.criterionG, self.criterionD = get_loss(self.config["model"])
        self.netG, self.netD = get_nets(self.config["model"])
        self.netG.cuda()
        self.netD.cuda()
        self.optimizer_G = optim.Adam(self.netG.parameters(), lr=1e-4)
        self.optimizer_D = optim.Adam(self.netD.parameters(), lr=1e-4)
        self.scheduler_G = optim.lr_scheduler.StepLR(self.optimizer_G, step_size=50, gamma=0.5)
        self.scheduler_D = optim.lr_scheduler.StepLR(self.optimizer_D, step_size=50, gamma=0.5)


if __name__ == "__main__":
    with open("config/config.yaml") as cfg:
        config = yaml.safe_load(cfg)
    get_dataloader = partial(DataLoader, batch_size=config["batch_size"], num_workers=8, pin_memory=True, drop_last=True)
    train_dl = get_dataloader(PairedDataset.from_config(config["train"]), shuffle=True)
    val_dl = get_dataloader(PairedDataset.from_config(config["val"]))
    Trainer(config, train_dl, val_dl).train()

import torch
import torch.nn as nn
import torch.nn.functional as F

from lib.datasets import JointDataset, make_loader
from lib.models import create_model
from lib.opts import opts


class MotLoss(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.emb_dim = opt.reid_dim
        self.classifier = nn.Linear(self.emb_dim, opt.nID)
        self.s_det = nn.Parameter(-1.85 * torch.ones(1))
        self.s_id = nn.Parameter(-1.05 * torch.ones(1))

    def forward(self, out, batch):
        hm = F.binary_cross_entropy_with_logits(out["hm"], batch["hm"])
        wh = F.l1_loss(out["wh"], batch["wh"])
        logits = self.classifier(F.normalize(out["id"]))
        id_loss = F.cross_entropy(logits, batch["ids"], ignore_index=-1)
        det = hm + 0.1 * wh
        loss = torch.exp(-self.s_det) * det + torch.exp(-self.s_id) * id_loss + self.s_det + self.s_id
        return 0.5 * loss.squeeze(), {"det": det.detach(), "id": id_loss.detach()}


class Trainer:
    def __init__(self, opt, model, loss, device):
        self.opt = opt
        self.model = model.to(device)
        self.loss = loss.to(device)
        self.device = device
        self.optimizer = torch.optim.Adam(self.model.parameters(), opt.lr)

    def to_device(self, batch):
        return {k: v.to(self.device, non_blocking=True) for k, v in batch.items()}

    def train(self, epoch, loader):
        self.model.train()
        for it, batch in enumerate(loader):
            batch = self.to_device(batch)
            out = self.model(batch["input"])
            loss, stats = self.loss(out, batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if it % self.opt.print_iter == 0:
                print(epoch, it, {k: round(v.item(), 4) for k, v in stats.items()})


def main(opt):
    torch.manual_seed(opt.seed)
    dataset = JointDataset(opt, opt.data_dir)
    loader = make_loader(dataset, batch_size=opt.batch_size, shuffle=True, num_workers=8, pin_memory=True)
    model = create_model(opt.arch, opt.heads, opt.head_conv)
    trainer = Trainer(opt, model, MotLoss(opt), torch.device("cuda"))
    for epoch in range(1, opt.num_epochs + 1):
        trainer.train(epoch, loader)
        if epoch in opt.lr_step:
            for g in trainer.optimizer.param_groups:
                g["lr"] *= 0.1
        torch.save(trainer.model.state_dict(), f"{opt.save_dir}/model_last.pth")


if __name__ == "__main__":
    main(opts().parse())

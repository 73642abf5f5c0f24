import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from net import VQANet
from utils import evaluate, load_cfg, soft_bce, to_cuda
from vqa_data import VQAFeatures


def set_seed(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


def main():
    cfg = load_cfg("mcan_small.yml")
    set_seed(cfg["seed"])
    tr = VQAFeatures(cfg["feat_dir"], "train")
    va = VQAFeatures(cfg["feat_dir"], "val")
    tr_loader = DataLoader(tr, cfg["bs"], shuffle=True, num_workers=8, pin_memory=True, drop_last=True)
    va_loader = DataLoader(va, cfg["bs"], num_workers=8, pin_memory=True)

    net = VQANet(tr.vocab_size, tr.num_answers, dropout=0.1).cuda()
    optim = torch.optim.Adam(net.parameters(), lr=cfg["lr"], betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.MultiStepLR(optim, [10, 12], 0.2)

    net.train()
    for epoch in range(cfg["epochs"]):
        for step, batch in enumerate(tr_loader):
            feats, ques, ans = to_cuda(batch)
            loss = soft_bce(net(feats, ques), ans)
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optim.step()
            if step % 200 == 0:
                print("\r[epoch %2d][step %5d/%5d] loss: %.4f" % (epoch, step, len(tr_loader), loss.item()), end="")
        sched.step()
        acc = evaluate(net, va_loader)
        print("\nepoch %d  val overall: %.2f" % (epoch, acc))
        torch.save(net.state_dict(), "ckpts/epoch%d.pkl" % epoch)


if __name__ == "__main__":
    main()

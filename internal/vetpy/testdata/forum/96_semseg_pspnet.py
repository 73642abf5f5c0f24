import logging
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from model.pspnet import PSPNet
from util import config, dataset, transform
from util.util import AverageMeter, poly_learning_rate

logger = logging.getLogger("main")


def build(args):
    mean, std = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
    tf = transform.Compose([transform.RandScale([0.5, 2.0]), transform.RandomGaussianBlur(),
                            transform.Crop([args.train_h, args.train_w], padding=mean),
                            transform.ToTensor(), transform.Normalize(mean=mean, std=std)])
    tf_val = transform.Compose([transform.Crop([args.train_h, args.train_w], crop_type="center", padding=mean),
                                transform.ToTensor(), transform.Normalize(mean=mean, std=std)])
    train = dataset.SemData(split="train", data_root=args.data_root, data_list=args.train_list, transform=tf)
    val = dataset.SemData(split="val", data_root=args.data_root, data_list=args.val_list, transform=tf_val)
    return (DataLoader(train, args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True, drop_last=True),
            DataLoader(val, args.batch_size_val, num_workers=args.workers, pin_memory=True))


def train(loader, model, optimizer, epoch, args):
    model.train()
    max_iter = args.epochs * len(loader)
    for i, (input, target) in enumerate(loader):
        input = input.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        output, main_loss, aux_loss = model(input, target)
        loss = main_loss + args.aux_weight * aux_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr = poly_learning_rate(args.base_lr, epoch * len(loader) + i + 1, max_iter, power=args.power)
        for g in optimizer.param_groups:
            g["lr"] = lr
        if (i + 1) % args.print_freq == 0:
            logger.info("Epoch [%d] [%d/%d] loss %.4f", epoch, i + 1, len(loader), loss.item())


def validate(loader, model, criterion):
    model.eval()
    losses = []
    for i, (input, target) in enumerate(loader):
        input = input.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        output = model(input)
        losses.append(criterion(output, target).detach())
    logger.info("val loss %.4f", torch.stack(losses).mean().item())


def main():
    args = config.load_cfg_from_cfg_file("config/ade20k.yaml")
    criterion = nn.CrossEntropyLoss(ignore_index=args.ignore_label)
    model = PSPNet(layers=args.layers, classes=args.classes, criterion=criterion).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.base_lr, momentum=0.9, weight_decay=1e-4)
    train_loader, val_loader = build(args)
    for epoch in range(args.epochs):
        train(train_loader, model, optimizer, epoch, args)
        validate(val_loader, model, criterion)
        torch.save(model.state_dict(), args.save_path)


if __name__ == "__main__":
    main()

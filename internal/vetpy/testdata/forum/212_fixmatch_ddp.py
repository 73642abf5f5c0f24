import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from cifar_ssl import get_cifar10
from wideresnet import build_wideresnet


def parse():
    p = argparse.ArgumentParser(description="FixMatch")
    p.add_argument("--num-labeled", type=int, default=4000)
    p.add_argument("--total-steps", type=int, default=2 ** 18)
    p.add_argument("--eval-step", type=int, default=1024)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--mu", type=int, default=7)
    p.add_argument("--threshold", type=float, default=0.95)
    p.add_argument("--lr", type=float, default=0.03)
    p.add_argument("--out", default="result")
    return p.parse_args()


def test(model, loader, device):
    model.eval()
    correct = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in loader:
            x = x.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            correct += (model(x).argmax(1) == y).sum()
    model.train()
    return correct.item() / len(loader.dataset)


def main():
    args = parse()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    dist.init_process_group("nccl")
    torch.manual_seed(0)

    labeled, unlabeled, test_set = get_cifar10("./data", args.num_labeled)
    labeled_sampler = DistributedSampler(labeled)
    unlabeled_sampler = DistributedSampler(unlabeled)
    labeled_loader = DataLoader(labeled, sampler=labeled_sampler, batch_size=args.batch_size,
                                num_workers=4, drop_last=True, pin_memory=True)
    unlabeled_loader = DataLoader(unlabeled, sampler=unlabeled_sampler,
                                  batch_size=args.batch_size * args.mu,
                                  num_workers=4, drop_last=True, pin_memory=True)
    test_loader = DataLoader(test_set, batch_size=256, num_workers=4, pin_memory=True)

    model = build_wideresnet(depth=28, widen_factor=2, num_classes=10).to(device)
    model = DDP(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True,
                                weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.total_steps)

    labeled_iter = iter(labeled_loader)
    unlabeled_iter = iter(unlabeled_loader)
    epochs = args.total_steps // args.eval_step
    model.train()
    for epoch in range(epochs):
        for batch_idx in range(args.eval_step):
            try:
                x, y = next(labeled_iter)
            except StopIteration:
                labeled_iter = iter(labeled_loader)
                x, y = next(labeled_iter)
            try:
                (u_w, u_s), _ = next(unlabeled_iter)
            except StopIteration:
                unlabeled_iter = iter(unlabeled_loader)
                (u_w, u_s), _ = next(unlabeled_iter)

            n = x.size(0)
            inputs = torch.cat([x, u_w, u_s]).to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            logits = model(inputs)
            lx = F.cross_entropy(logits[:n], y)
            lw, ls = logits[n:].chunk(2)
            prob, pseudo = torch.softmax(lw.detach(), dim=-1).max(dim=-1)
            mask = prob.ge(args.threshold).float()
            lu = (F.cross_entropy(ls, pseudo, reduction="none") * mask).mean()
            loss = lx + lu

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()

        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} acc {test(model.module, test_loader, device):.4f}")
            torch.save(model.module.state_dict(), os.path.join(args.out, "checkpoint.pth"))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

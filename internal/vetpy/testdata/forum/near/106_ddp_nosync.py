"""torchrun --nproc_per_node=4 near_16_ddp_nosync.py"""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from librispeech import LibriSpeech, collate
from conformer import ConformerCTC

ACCUM = 4
EPOCHS = 40


def make_loader(split, train):
    ds = LibriSpeech(split)
    sampler = DistributedSampler(ds, shuffle=train, drop_last=train)
    return DataLoader(ds, batch_size=16, sampler=sampler, num_workers=8, pin_memory=True, collate_fn=collate)


def begin_epoch(loader, epoch):
    if isinstance(loader.sampler, DistributedSampler):
        loader.sampler.set_epoch(epoch)
    return iter(loader)


def ctc(model, batch, device):
    feats, flen, toks, tlen = (t.to(device, non_blocking=True) for t in batch)
    logp, olen = model(feats, flen)
    return F.ctc_loss(logp.transpose(0, 1), toks, olen, tlen, zero_infinity=True)


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl")
    train_dl, dev_dl = make_loader("train-960", True), make_loader("dev-other", False)
    model = DDP(ConformerCTC(80, 256, vocab=1024).to(device), device_ids=[rank])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-3, epochs=EPOCHS,
                                                steps_per_epoch=len(train_dl) // ACCUM + 1)

    for epoch in range(EPOCHS):
        model.train()
        opt.zero_grad(set_to_none=True)
        for i, batch in enumerate(begin_epoch(train_dl, epoch)):
            last = (i + 1) % ACCUM == 0
            sync = contextlib.nullcontext() if last else model.no_sync()
            with sync:
                loss = ctc(model, batch, device)
                (loss / ACCUM).backward()
            if last:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                opt.step()
                sched.step()
                opt.zero_grad(set_to_none=True)
            if rank == 0 and i % 200 == 0:
                print(f"epoch {epoch} [{i}/{len(train_dl)}] loss {loss.item():.3f}", flush=True)

        model.eval()
        stats = torch.zeros(2, device=device)
        with torch.no_grad():
            for batch in dev_dl:
                stats[0] += ctc(model, batch, device)
                stats[1] += 1
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch} dev loss {(stats[0] / stats[1]).item():.3f}", flush=True)
            torch.save(model.module.state_dict(), "conformer.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

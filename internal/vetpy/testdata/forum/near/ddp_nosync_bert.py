import contextlib
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling, get_linear_schedule_with_warmup

from corpus import TokenizedCorpus

ACCUM, EPOCHS = 8, 2


def setup():
    dist.init_process_group("nccl")
    lr = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(lr)
    return lr, torch.device("cuda", lr)


def train_one_epoch(model, loader, opt, sched, scaler, device, rank, epoch):
    loader.sampler.set_epoch(epoch)
    model.train()
    tot = torch.zeros((), device=device)
    steps = len(loader) // ACCUM * ACCUM
    for i, batch in enumerate(loader):
        if i >= steps:
            break
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        last = (i + 1) % ACCUM == 0
        with contextlib.nullcontext() if last else model.no_sync():
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(**batch).loss / ACCUM
            scaler.scale(loss).backward()
        tot += loss.detach()
        if last:
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            sched.step()
    if rank == 0:
        print("epoch", epoch, "mlm loss", tot.item() * ACCUM / steps)


def main():
    local_rank, device = setup()
    tok = AutoTokenizer.from_pretrained("bert-base-uncased")
    ds = TokenizedCorpus("wiki.bin", 512)
    loader = DataLoader(ds, batch_size=32, sampler=DistributedSampler(ds, shuffle=True),
                        collate_fn=DataCollatorForLanguageModeling(tok), num_workers=4, pin_memory=True)
    model = AutoModelForMaskedLM.from_pretrained("bert-base-uncased").to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sched = get_linear_schedule_with_warmup(opt, 1000, EPOCHS * (len(loader) // ACCUM))
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(EPOCHS):
        train_one_epoch(model, loader, opt, sched, scaler, device, dist.get_rank(), epoch)
    if dist.get_rank() == 0:
        model.module.save_pretrained("mlm")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

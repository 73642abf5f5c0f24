"""
Small GPT2 pre-training with DDP.
    torchrun --standalone --nproc_per_node 4 32_ddp_lm_pretrain.py --bin openwebtext.bin
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from transformers import GPT2Config, GPT2LMHeadModel


class Chunks(Dataset):
    def __init__(self, path, ctx):
        self.data, self.ctx = np.memmap(path, dtype=np.uint16, mode="r"), ctx

    def __len__(self):
        return len(self.data) // self.ctx

    def __getitem__(self, i):
        return torch.from_numpy(self.data[i * self.ctx:(i + 1) * self.ctx].astype(np.int64))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.rank)
        ds = Chunks(args.bin, args.ctx)
        self.sampler = DistributedSampler(ds, shuffle=True, drop_last=True)
        self.loader = DataLoader(ds, args.batch, sampler=self.sampler, num_workers=4, pin_memory=True, drop_last=True)
        model = GPT2LMHeadModel(GPT2Config(n_positions=args.ctx)).cuda()
        self.model = DistributedDataParallel(model, device_ids=[self.rank])
        self.opt = torch.optim.AdamW(self.model.parameters(), args.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, args.lr, total_steps=args.epochs * len(self.loader))

    def step(self, ids):
        ids = ids.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = self.model(input_ids=ids, labels=ids).loss
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.sched.step()
        return loss.detach()

    def fit(self):
        self.model.train()
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            for it, ids in enumerate(self.loader):
                t0 = time.time()
                loss = self.step(ids)
                dt = time.time() - t0
                if it % 100 == 0 and self.rank == 0:
                    tps = ids.numel() * dist.get_world_size() / dt
                    print(f"{epoch}/{it} loss {loss.item():.3f} {dt * 1000:.1f} ms/it {tps / 1e3:.0f}k tok/s", flush=True)
            if self.rank == 0:
                torch.save(self.model.module.state_dict(), "gpt2.pt")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("--ctx", type=int, default=1024)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--lr", type=float, default=6e-4)
    p.add_argument("--clip", type=float, default=1.0)
    args = p.parse_args()
    dist.init_process_group("nccl")
    try:
        Trainer(args).fit()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

# torchrun --nproc_per_node=4 torchrun_vocoder.py
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from vocoder import LJSpeech, MelGANGenerator, stft_loss


class Runner:
    def __init__(self):
        dist.init_process_group(backend="nccl")
        self.local_rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.local_rank)
        self.device = torch.device("cuda", self.local_rank)
        net = MelGANGenerator().to(self.device)
        self.net = DistributedDataParallel(net, device_ids=[self.local_rank])
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-4)
        self.train_set, self.dev_set = LJSpeech("train"), LJSpeech("dev")
        self.sampler = DistributedSampler(self.train_set)
        self.train_dl = DataLoader(self.train_set, 16, sampler=self.sampler, num_workers=4, pin_memory=True)
        self.dev_dl = DataLoader(self.dev_set, 16, sampler=DistributedSampler(self.dev_set, shuffle=False),
                                 num_workers=2, pin_memory=True)

    def train_epoch(self):
        self.net.train()
        for mel, wav in self.train_dl:
            mel = mel.to(self.device, non_blocking=True)
            wav = wav.to(self.device, non_blocking=True)
            y = self.net(mel)
            loss = stft_loss(y, wav) + F.l1_loss(y, wav)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def evaluate(self):
        total = torch.zeros(2, device=self.device)
        for mel, wav in self.dev_dl:
            mel = mel.to(self.device, non_blocking=True)
            wav = wav.to(self.device, non_blocking=True)
            total[0] += stft_loss(self.net(mel), wav)
            total[1] += 1
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    def run(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            dev = self.evaluate()
            if self.local_rank == 0:
                print(epoch, dev)
                torch.save(self.net.module.state_dict(), "melgan.pt")
        dist.destroy_process_group()


if __name__ == "__main__":
    Runner().run(500)

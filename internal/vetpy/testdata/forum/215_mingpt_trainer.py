import os
from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from char_dataset import CharDataset, DataConfig
from model import GPT, GPTConfig, OptimizerConfig, create_optimizer


@dataclass
class TrainerConfig:
    max_epochs: int = 10
    batch_size: int = 216
    data_loader_workers: int = 4
    grad_norm_clip: float = 1.0
    snapshot_path: str = "gpt_snapshot.pt"
    save_every: int = 3
    use_amp: bool = True


@dataclass
class Snapshot:
    model_state: Dict[str, Any]
    optimizer_state: Dict[str, Any]
    finished_epoch: int


class Trainer:

    def __init__(self, cfg: TrainerConfig, model, optimizer, train_set: Dataset,
                 test_set: Optional[Dataset] = None):
        self.cfg = cfg
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.train_loader = self._loader(train_set)
        self.test_loader = self._loader(test_set) if test_set else None
        self.epochs_run = 0
        self.model = model.to(self.local_rank)
        self.optimizer = optimizer
        if self.cfg.use_amp:
            self.scaler = torch.cuda.amp.GradScaler()
        self.model = DDP(self.model, device_ids=[self.local_rank])

    def _loader(self, dataset):
        return DataLoader(dataset, batch_size=self.cfg.batch_size, pin_memory=True, shuffle=False,
                          num_workers=self.cfg.data_loader_workers, sampler=DistributedSampler(dataset))

    def _run_batch(self, source, targets, train: bool = True):
        with torch.set_grad_enabled(train), torch.amp.autocast(device_type="cuda", dtype=torch.float16,
                                                               enabled=self.cfg.use_amp):
            _, loss = self.model(source, targets)
        if train:
            self.optimizer.zero_grad(set_to_none=True)
            if self.cfg.use_amp:
                self.scaler.scale(loss).backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)
                self.optimizer.step()
        return loss.detach()

    def _run_epoch(self, epoch: int, loader: DataLoader, train: bool = True):
        loader.sampler.set_epoch(epoch)
        self.model.train(train)
        for it, (source, targets) in enumerate(loader):
            source = source.to(self.local_rank, non_blocking=True)
            targets = targets.to(self.local_rank, non_blocking=True)
            loss = self._run_batch(source, targets, train)
            if it % 100 == 0:
                name = "Train" if train else "Eval"
                print(f"[GPU{self.global_rank}] Epoch {epoch} | Iter {it} | {name} Loss {loss.item():.5f}")

    def _save_snapshot(self, epoch):
        snap = Snapshot(self.model.module.state_dict(), self.optimizer.state_dict(), epoch)
        torch.save(asdict(snap), self.cfg.snapshot_path)
        print(f"Snapshot saved at epoch {epoch}")

    def train(self):
        for epoch in range(self.epochs_run + 1, self.cfg.max_epochs + 1):
            self._run_epoch(epoch, self.train_loader, train=True)
            if self.global_rank == 0 and epoch % self.cfg.save_every == 0:
                self._save_snapshot(epoch)
            if self.test_loader:
                self._run_epoch(epoch, self.test_loader, train=False)


def main():
    dist.init_process_group(backend="nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dataset = CharDataset(DataConfig(path="data/input.txt", block_size=128))
    n = int(0.9 * len(dataset))
    train_set, test_set = torch.utils.data.random_split(
        dataset, [n, len(dataset) - n], generator=torch.Generator().manual_seed(1))
    gpt_cfg = GPTConfig(n_layer=8, n_head=8, n_embd=512, vocab_size=dataset.vocab_size, block_size=128)
    model = GPT(gpt_cfg)
    optimizer = create_optimizer(model, OptimizerConfig(learning_rate=3e-4, weight_decay=0.1))
    Trainer(TrainerConfig(), model, optimizer, train_set, test_set).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch


class FP16Trainer:
    def __init__(self, model, optimizer, scheduler, loader, cfg):
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.loader = loader
        self.cfg = cfg
        self.scaler = torch.amp.GradScaler("cuda", init_scale=2.0 ** 14)

    def forward_loss(self, batch):
        out = self.model(batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["labels"])
        return out.loss

    def optimize(self, loss):
        self.scaler.scale(loss).backward()
        if self.cfg.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
        self.scheduler.step()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def epoch(self):
        self.model.train()
        for batch in self.loader:
            batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.forward_loss(batch)
            self.optimize(loss)
            torch.cuda.empty_cache()

import argparse
import os

import torch
import torch.nn as nn
from transformers import AutoModel, AutoTokenizer

from mt_data import BatchGen, load_tasks


class SANBert(nn.Module):
    def __init__(self, name, n_labels):
        super().__init__()
        self.bert = AutoModel.from_pretrained(name)
        self.dropout = nn.Dropout(0.1)
        self.heads = nn.ModuleList([nn.Linear(self.bert.config.hidden_size, n) for n in n_labels])

    def forward(self, task_id, input_ids, attention_mask):
        h = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state[:, 0]
        return self.heads[task_id](self.dropout(h))


class MTDNNModel:
    def __init__(self, opt, n_labels):
        self.config = opt
        self.updates = 0
        self.network = SANBert(opt.init_checkpoint, n_labels)
        self.optimizer = torch.optim.Adagrad(self.network.parameters(), lr=opt.learning_rate)
        if opt.cuda:
            self.network.cuda()
        self.train_loss = torch.zeros((), device="cuda" if opt.cuda else "cpu")

    def update(self, batch):
        self.network.train()
        y = batch["y"].cuda(non_blocking=True)
        logits = self.network(batch["task_id"], batch["input_ids"].cuda(non_blocking=True),
                              batch["mask"].cuda(non_blocking=True))
        loss = nn.functional.cross_entropy(logits, y)
        self.train_loss = 0.99 * self.train_loss + 0.01 * loss.detach()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.global_grad_clipping)
        self.optimizer.step()
        self.updates += 1

    def save(self, filename):
        torch.save({"state": self.network.state_dict(), "config": vars(self.config)}, filename)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init_checkpoint", default="bert-base-uncased")
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--global_grad_clipping", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--log_per_updates", type=int, default=500)
    parser.add_argument("--cuda", action="store_true", default=True)
    parser.add_argument("--output_dir", default="checkpoint")
    args = parser.parse_args()

    tok = AutoTokenizer.from_pretrained(args.init_checkpoint)
    tasks, n_labels = load_tasks(tok)
    train_data = BatchGen(tasks, batch_size=32, pin_memory=True, num_workers=2)
    model = MTDNNModel(args, n_labels)
    for epoch in range(args.epochs):
        for batch in train_data:
            model.update(batch)
            if model.updates % args.log_per_updates == 0:
                print("updates [%6d] train loss [%.5f]" % (model.updates, model.train_loss.item()))
        model.save(os.path.join(args.output_dir, "model_{}.pt".format(epoch)))


if __name__ == "__main__":
    main()

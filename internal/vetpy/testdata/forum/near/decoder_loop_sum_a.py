"""Image captioning: the loss IS summed with its graph over the time steps, one backward afterwards."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models import resnet50

from flickr_caps import PAD, FlickrCaptions, collate_caps

dev = torch.device("cuda")


class Captioner(nn.Module):
    def __init__(self, vocab, d=512):
        super().__init__()
        r = resnet50(weights="DEFAULT")
        self.cnn = nn.Sequential(*list(r.children())[:-2])
        self.proj = nn.Linear(2048, d)
        self.emb = nn.Embedding(vocab, d, padding_idx=PAD)
        self.cell = nn.GRUCell(2 * d, d)
        self.att = nn.Linear(2 * d, 1)
        self.out = nn.Linear(d, vocab)

    def encode(self, img):
        return self.proj(self.cnn(img).flatten(2).transpose(1, 2))

    def step(self, tok, h, ctx):
        a = self.att(torch.cat([ctx, h.unsqueeze(1).expand_as(ctx)], -1)).softmax(1)
        h = self.cell(torch.cat([self.emb(tok), (a * ctx).sum(1)], -1), h)
        return self.out(h), h


def caption_loss(model, img, cap):
    ctx = model.encode(img)
    h = ctx.mean(1)
    total = 0.0
    per_step = []
    for t in range(cap.size(1) - 1):
        logits, h = model.step(cap[:, t], h, ctx)
        step_loss = F.cross_entropy(logits, cap[:, t + 1], ignore_index=PAD, reduction="sum")
        total += step_loss
        per_step.append(step_loss)
    tokens = (cap[:, 1:] != PAD).sum()
    # front loaded weight on the first words
    return (total + 0.5 * torch.stack(per_step[:3]).sum()) / tokens


def main():
    ds = FlickrCaptions("flickr30k", "train")
    loader = DataLoader(ds, 64, shuffle=True, collate_fn=collate_caps, num_workers=8, pin_memory=True)
    model = Captioner(len(ds.vocab)).to(dev)
    opt = torch.optim.Adam(model.parameters(), 2e-4)
    for epoch in range(15):
        model.train()
        run = torch.zeros((), device=dev)
        for img, cap in loader:
            loss = caption_loss(model, img.to(dev, non_blocking=True), cap.to(dev, non_blocking=True))
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            run += loss.detach()
        print(f"epoch {epoch} nll/token {run.item() / len(loader):.3f}")
        torch.save(model.state_dict(), "cap.pt")


if __name__ == "__main__":
    main()

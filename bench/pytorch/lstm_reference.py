"""A small language model of nn.LSTM, trained 20 steps on rows of text that go on from batch to batch: the reference of
`warpline train lstm --init --order sequential`.

    python lstm_reference.py [--dir model/testdata/lstm]

init.safetensors        weights before the first step
tokens.bin              little-endian uint16
golden.json             sizes, hyper-parameters, the loss of each step
gradients.safetensors   of the first step
final.safetensors       weights after the last step

All is computed in float64. Row r of the batches of an epoch is the r-th of as many runs of blocks; what the model remembers of a row goes
on to the next batch without a gradient, and begins anew with an epoch.
"""

import argparse
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import common

VOCAB, EMBEDDING, WIDTH, LAYERS = 23, 7, 12, 2
HYPER = dict(lr=2e-2, beta1=0.9, beta2=0.95, eps=1e-6, weight_decay=0.1)
ROWS, CONTEXT, STEPS, TOKENS = 4, 9, 20, 333  # 9 steps are an epoch


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, EMBEDDING)
        self.rnn = nn.LSTM(EMBEDDING, WIDTH, LAYERS, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens, state):
        y, state = self.rnn(self.embed(tokens), state)
        return self.head(y), state


def batches(ids):
    blocks = (len(ids) - 1) // CONTEXT
    per = blocks // ROWS
    while True:
        for t in range(per):
            starts = [(r * per + t) * CONTEXT for r in range(ROWS)]
            x = torch.stack([ids[s:s + CONTEXT] for s in starts])
            y = torch.stack([ids[s + 1:s + CONTEXT + 1] for s in starts])
            yield t == 0, x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", default=common.ROOT / "model" / "testdata" / "lstm", type=pathlib.Path)
    args = parser.parse_args()
    common.deterministic(14)
    model = Model()
    common.save_tensors(args.dir / "init.safetensors", model.state_dict())
    model.double()
    # Each token follows from the two before, but for noise.
    rng, ids = np.random.default_rng(14), [1, 2]
    while len(ids) < TOKENS:
        ids.append((3 * ids[-1] + 5 * ids[-2] + 1) % VOCAB if rng.random() < 0.9 else int(rng.integers(VOCAB)))
    np.array(ids, dtype="<u2").tofile(args.dir / "tokens.bin")
    optimizer = torch.optim.AdamW([
        {"params": [p for p in model.parameters() if p.dim() > 1]},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ], lr=HYPER["lr"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["eps"], weight_decay=HYPER["weight_decay"])
    losses, state = [], None
    for (first, x, y), step in zip(batches(torch.tensor(ids)), range(STEPS)):
        scores, state = model(x, None if first else tuple(s.detach() for s in state))
        loss = F.cross_entropy(scores.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            common.save_tensors(args.dir / "gradients.safetensors", {n: p.grad.float() for n, p in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    common.save_tensors(args.dir / "final.safetensors", {n: p.float() for n, p in model.state_dict().items()})
    sizes = dict(vocab=VOCAB, embedding=EMBEDDING, width=WIDTH, layers=LAYERS, rows=ROWS, context=CONTEXT, steps=STEPS)
    common.save_json(args.dir / "golden.json", {"versions": common.versions(), "sizes": sizes, "hyper": HYPER, "losses": losses})


if __name__ == "__main__":
    main()

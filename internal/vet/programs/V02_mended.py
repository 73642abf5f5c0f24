import torch
from torch import nn

device = "cuda"
rnn = nn.LSTM(784, 64).to(device)
optimizer = torch.optim.AdamW(rnn.parameters())
state = None
for x, y in train_loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    if state is not None:
        state = tuple(s.detach() for s in state)
    out, state = rnn(x, state)
    nn.functional.mse_loss(out, y).backward()
    optimizer.step()

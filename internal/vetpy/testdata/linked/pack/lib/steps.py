import torch


def forward_backward(model, x, y):
    torch.nn.functional.mse_loss(model(x), y).backward()


def apply(opt):
    opt.step()  # want: R07

import torch
import torch.nn as nn
import torch.utils.data as data

from sr import EDSR, Div2k


def main():
    net = EDSR(scale=2).cuda()
    crit = nn.L1Loss()
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    loader = data.DataLoader(Div2k("train"), batch_size=16, shuffle=True, num_workers=4)
    for epoch in range(300):
        net.train()
        opt.zero_grad()
        for lr_img, hr_img in loader:
            lr_img = lr_img.cuda()
            hr_img = hr_img.cuda()
            sr = net(lr_img)
            loss = crit(sr, hr_img)
            loss.backward()
            opt.step()
        print("epoch {} loss {:.4f}".format(epoch, loss.item()))


if __name__ == "__main__":
    main()

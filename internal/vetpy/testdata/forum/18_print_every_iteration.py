import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter

from net import WaveNet
from audio import Clips

writer = SummaryWriter()
dev = torch.device("cuda")
net = WaveNet(layers=10, blocks=4).to(dev)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
loss_func = nn.CrossEntropyLoss()
loader = DataLoader(Clips("vctk"), batch_size=4, shuffle=True, num_workers=6, pin_memory=True)

global_step = 0
for epoch in range(100):
    for wav, target in loader:
        wav = wav.to(dev, non_blocking=True)
        target = target.to(dev, non_blocking=True)
        pred = net(wav)
        loss = loss_func(pred, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        global_step += 1
        writer.add_scalar("loss", loss.item(), global_step)
        print(f"step {global_step} loss {loss.item():.4f}")
    torch.save(net.state_dict(), "wavenet_%d.pt" % epoch)

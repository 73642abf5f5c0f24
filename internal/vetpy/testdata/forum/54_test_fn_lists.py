import torch
from torch.utils.data import DataLoader

from medical import Volumes, VNet


def test(model, dataset, device="cuda"):
    model.eval()
    outs, truth = [], []
    for vol, seg in DataLoader(dataset, batch_size=1, num_workers=2):
        out = model(vol.to(device))
        outs.append(out.softmax(1).cpu())
        truth.append(seg)
    return torch.cat(outs), torch.cat(truth)


if __name__ == "__main__":
    vnet = VNet(classes=4).cuda()
    vnet.load_state_dict(torch.load("vnet.pt"))
    p, t = test(vnet, Volumes("test"))
    print((p.argmax(1) == t).float().mean())

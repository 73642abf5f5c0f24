import os

import nibabel as nib
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from vnet import VNet


class Volumes(Dataset):
    def __init__(self, root, size=96):
        self.cases = sorted(os.listdir(root))
        self.root, self.size = root, size

    def __len__(self):
        return len(self.cases)

    def __getitem__(self, i):
        d = os.path.join(self.root, self.cases[i])
        img = nib.load(os.path.join(d, "image.nii.gz")).get_fdata(dtype=np.float32)
        seg = nib.load(os.path.join(d, "label.nii.gz")).get_fdata().astype(np.int64)
        o = [np.random.randint(0, s - self.size + 1) for s in img.shape]
        sl = tuple(slice(a, a + self.size) for a in o)
        img = (img[sl] - img.mean()) / (img.std() + 1e-6)
        return torch.from_numpy(img)[None], torch.from_numpy(seg[sl])


def main():
    device = torch.device("cuda")
    loader = DataLoader(Volumes("/data/abdomen/train"), batch_size=2, shuffle=True, num_workers=6)
    model = VNet(in_channels=1, classes=14).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(500):
        model.train()
        running = torch.zeros((), device=device)
        for img, seg in loader:
            img = img.to(device, non_blocking=True)
            seg = seg.to(device, non_blocking=True)
            opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(img), seg)
            loss.backward()
            opt.step()
            running += loss.detach()
        print(f"{epoch} {running.item() / len(loader):.4f}")
        if epoch % 50 == 0:
            torch.save(model.state_dict(), f"vnet_{epoch}.pt")


if __name__ == "__main__":
    main()

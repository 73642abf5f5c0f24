import cv2
import torch
from torch.utils.data import DataLoader, Dataset

from resnet import build


class Plates(Dataset):
    def __init__(self, files, labels):
        self.files = files
        self.labels = labels

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = cv2.imread(self.files[i])
        img = cv2.cvtColor(cv2.resize(img, (224, 224)), cv2.COLOR_BGR2RGB)
        return torch.from_numpy(img).permute(2, 0, 1).float() / 255, self.labels[i]


def main(files, labels):
    dl = DataLoader(Plates(files, labels), batch_size=64, shuffle=True, pin_memory=True)
    model = build(18, 800).to("cuda")
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(10):
        model.train()
        for x, y in dl:
            x = x.to("cuda", non_blocking=True)
            y = y.to("cuda", non_blocking=True)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            torch.cuda.empty_cache()
        torch.save(model.state_dict(), "plates.pt")

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader

from chest import ChestXray, DenseNet121

net = DenseNet121(14).cuda()
net.load_state_dict(torch.load("model.pth.tar"))
loader = DataLoader(ChestXray("test"), batch_size=32, num_workers=8, pin_memory=True)

gt = []
pred = []
net.eval()
for i, (img, lab) in enumerate(loader):
    img = img.cuda()
    out = net(img)
    pred.append(out)
    gt.append(lab)

pred = torch.cat(pred).detach().cpu().numpy()
gt = torch.cat(gt).numpy()
aucs = [roc_auc_score(gt[:, c], pred[:, c]) for c in range(14)]
print("mean auc", np.mean(aucs))

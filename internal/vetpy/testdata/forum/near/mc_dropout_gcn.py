import torch
import torch.nn as nn
import torch.nn.functional as F
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import SAGEConv


class SAGE(nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.c1, self.c2, self.drop = SAGEConv(i, h), SAGEConv(h, o), nn.Dropout(0.5)

    def forward(self, x, e):
        return self.c2(self.drop(F.relu(self.c1(x, e))), e)


device = torch.device("cuda")
ds = Planetoid("data/Pubmed", "PubMed")
data = ds[0].to(device)
model = SAGE(ds.num_features, 64, ds.num_classes).to(device)
opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(200):
    model.train()
    opt.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    opt.step()
    if epoch % 20 == 0:
        model.eval()
        with torch.no_grad():
            pred = model(data.x, data.edge_index).argmax(1)
            acc = (pred == data.y)[data.val_mask].float().mean()
        print(epoch, loss.item(), acc.item())

model.eval()
model.drop.train()
with torch.no_grad():
    probs = torch.stack([model(data.x, data.edge_index).softmax(-1) for _ in range(50)])
entropy = -(probs.mean(0) * probs.mean(0).clamp_min(1e-9).log()).sum(-1)
print("mean test entropy", entropy[data.test_mask].mean().item())

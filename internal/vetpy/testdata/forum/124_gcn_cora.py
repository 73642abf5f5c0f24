import torch
import torch.nn.functional as F
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self, f_in, hidden, f_out, p=0.5):
        super().__init__()
        self.conv1 = GCNConv(f_in, hidden)
        self.conv2 = GCNConv(hidden, f_out)
        self.p = p

    def forward(self, x, edge_index):
        x = F.dropout(x, self.p, training=self.training)
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, self.p, training=self.training)
        return self.conv2(x, edge_index)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dataset = Planetoid("data/Cora", "Cora")
data = dataset[0]
model = GCN(dataset.num_features, 64, dataset.num_classes).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


@torch.no_grad()
def test(x, edge_index, y, mask):
    pred = model(x, edge_index).argmax(dim=1)
    return (pred[mask] == y[mask]).float().mean().item()


best = 0.0
for epoch in range(1, 201):
    model.train()
    x, edge_index, y = data.x.to(device), data.edge_index.to(device), data.y.to(device)
    optimizer.zero_grad()
    out = model(x, edge_index)
    loss = F.cross_entropy(out[data.train_mask], y[data.train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        acc = test(x, edge_index, y, data.val_mask)
        best = max(best, acc)
        print(f"{epoch:03d} loss {loss.item():.4f} val {acc:.4f} best {best:.4f}")

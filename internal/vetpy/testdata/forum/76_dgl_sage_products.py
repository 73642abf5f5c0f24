import argparse
import time

import dgl
import dgl.nn as dglnn
import torch
import torch.nn as nn
import torch.nn.functional as F
from ogb.nodeproppred import DglNodePropPredDataset


class SAGE(nn.Module):
    def __init__(self, in_size, hid_size, out_size):
        super().__init__()
        self.layers = nn.ModuleList([dglnn.SAGEConv(in_size, hid_size, "mean"),
                                     dglnn.SAGEConv(hid_size, hid_size, "mean"),
                                     dglnn.SAGEConv(hid_size, out_size, "mean")])
        self.dropout = nn.Dropout(0.5)

    def forward(self, blocks, x):
        h = x
        for l, (layer, block) in enumerate(zip(self.layers, blocks)):
            h = layer(block, h)
            if l != len(self.layers) - 1:
                h = self.dropout(F.relu(h))
        return h


def evaluate(model, dataloader):
    model.eval()
    ys, preds = [], []
    with torch.no_grad():
        for _, _, blocks in dataloader:
            ys.append(blocks[-1].dstdata["label"])
            preds.append(model(blocks, blocks[0].srcdata["feat"]).argmax(1))
    return (torch.cat(ys) == torch.cat(preds)).float().mean().item()


def train(args, device, g, idx, model):
    sampler = dgl.dataloading.NeighborSampler([10, 10, 10], prefetch_node_feats=["feat"], prefetch_labels=["label"])
    train_dl = dgl.dataloading.DataLoader(g, idx["train"], sampler, device=device, batch_size=1024, shuffle=True, use_uva=True)
    val_dl = dgl.dataloading.DataLoader(g, idx["valid"], sampler, device=device, batch_size=1024, use_uva=True)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=5e-4)
    for epoch in range(args.epochs):
        t0 = time.time()
        model.train()
        total_loss = 0
        for it, (input_nodes, output_nodes, blocks) in enumerate(train_dl):
            x = blocks[0].srcdata["feat"]
            y = blocks[-1].dstdata["label"]
            loss = F.cross_entropy(model(blocks, x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total_loss += loss.item()
        acc = evaluate(model, val_dl)
        print("Epoch {:05d} | Loss {:.4f} | Accuracy {:.4f} | Time {:.4f}".format(epoch, total_loss / (it + 1), acc, time.time() - t0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    dataset = DglNodePropPredDataset("ogbn-products")
    g, labels = dataset[0]
    g.ndata["label"] = labels.squeeze()
    device = torch.device("cuda")
    idx = {k: v.to(device) for k, v in dataset.get_idx_split().items()}
    model = SAGE(g.ndata["feat"].shape[1], 256, dataset.num_classes).to(device)
    train(args, device, g, idx, model)

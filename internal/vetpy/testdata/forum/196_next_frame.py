# Moving MNIST next frame prediction with a ConvLSTM.
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class ConvLSTMCell(nn.Module):
    def __init__(self, cin, hidden, k=3):
        super(ConvLSTMCell, self).__init__()
        self.hidden = hidden
        self.conv = nn.Conv2d(cin + hidden, 4 * hidden, k, padding=k // 2)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = self.conv(torch.cat([x, h], dim=1)).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c

    def init_state(self, x):
        b, _, h, w = x.shape
        z = x.new_zeros(b, self.hidden, h, w)
        return z, z.clone()


class Predictor(nn.Module):
    def __init__(self, hidden=64):
        super(Predictor, self).__init__()
        self.cell1 = ConvLSTMCell(1, hidden)
        self.cell2 = ConvLSTMCell(hidden, hidden)
        self.out = nn.Conv2d(hidden, 1, 1)

    def forward(self, seq):
        # seq: B, T, 1, H, W
        s1 = self.cell1.init_state(seq[:, 0])
        s2 = self.cell2.init_state(seq[:, 0])
        preds = []
        for t in range(seq.size(1)):
            s1 = self.cell1(seq[:, t], s1)
            s2 = self.cell2(s1[0], s2)
            preds.append(self.out(s2[0]))
        return torch.stack(preds, dim=1)


def main():
    data = np.load("mnist_test_seq.npy").transpose(1, 0, 2, 3)          # N, 20, 64, 64
    data = torch.from_numpy(data).unsqueeze(2).float() / 255.0
    train_set = TensorDataset(data[:9000])
    test_set = TensorDataset(data[9000:])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, pin_memory=True, num_workers=2)
    test_loader = DataLoader(test_set, batch_size=16, pin_memory=True, num_workers=2)

    device = torch.device("cuda")
    net = Predictor().to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    for epoch in range(30):
        net.train()
        optimizer.zero_grad()
        train_loss = torch.zeros((), device=device)
        for (seq,) in train_loader:
            seq = seq.to(device, non_blocking=True)
            pred = net(seq[:, :-1])
            loss = criterion(pred, seq[:, 1:])
            loss.backward()
            optimizer.step()
            train_loss += loss.detach()

        net.eval()
        test_loss = torch.zeros((), device=device)
        with torch.no_grad():
            for (seq,) in test_loader:
                seq = seq.to(device, non_blocking=True)
                test_loss += criterion(net(seq[:, :-1]), seq[:, 1:])
        print("epoch %d train %.5f test %.5f" % (
            epoch, train_loss.item() / len(train_loader), test_loss.item() / len(test_loader)))
    torch.save(net.state_dict(), "convlstm.pth")


if __name__ == "__main__":
    main()

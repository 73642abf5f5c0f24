from torch import nn, optim
import torch
import argparse
import numpy as np
import utils
from network import coRNN

parser = argparse.ArgumentParser(description="training parameters")
parser.add_argument("--n_hid", type=int, default=128)
parser.add_argument("--T", type=int, default=5000)
parser.add_argument("--max_steps", type=int, default=60000)
parser.add_argument("--log_interval", type=int, default=100)
parser.add_argument("--batch", type=int, default=50)
parser.add_argument("--lr", type=float, default=2e-2)
args = parser.parse_args()

n_inp, n_out = 2, 1
device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = coRNN(n_inp, args.n_hid)
        self.drop = nn.Dropout(0.1)
        self.readout = nn.Linear(args.n_hid, n_out)

    def forward(self, x):
        return self.readout(self.drop(self.rnn(x)))


model = Net().to(device)
objective = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=args.lr)
test_x, test_y = utils.get_batch(args.T, 1000, device=device)


def test():
    model.eval()
    with torch.no_grad():
        out = model(test_x)
        loss = objective(out, test_y.unsqueeze(1))
    return loss.item()


def train():
    test_mse = []
    model.train()
    for i in range(args.max_steps):
        batch, label = utils.get_batch(args.T, args.batch, device=device)
        optimizer.zero_grad()
        out = model(batch)
        loss = objective(out, label.unsqueeze(1))
        loss.backward()
        optimizer.step()
        if i % args.log_interval == 0 and i != 0:
            mse = test()
            test_mse.append(mse)
            print("Test MSE: {:.6f} (step {})".format(mse, i))
            if mse < 1e-4:
                break
    np.savetxt("result_T%d.txt" % args.T, np.array(test_mse))


if __name__ == "__main__":
    train()

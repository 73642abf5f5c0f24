import argparse
import math

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_

from data_utils import Corpus

embed_size = 128
hidden_size = 1024
num_layers = 1
num_epochs = 5
batch_size = 20
seq_length = 30
learning_rate = 0.002


class RNNLM(nn.Module):
    def __init__(self, vocab_size, embed_size, hidden_size, num_layers):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed_size)
        self.lstm = nn.LSTM(embed_size, hidden_size, num_layers, batch_first=True)
        self.linear = nn.Linear(hidden_size, vocab_size)

    def forward(self, x, h):
        x = self.embed(x)
        out, (h, c) = self.lstm(x, h)
        out = out.reshape(out.size(0) * out.size(1), out.size(2))
        return self.linear(out), (h, c)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/train.txt")
    parser.add_argument("--clip", type=float, default=0.5)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    corpus = Corpus()
    ids = corpus.get_data(args.data, batch_size).to(device)
    vocab_size = len(corpus.dictionary)
    num_batches = ids.size(1) // seq_length

    model = RNNLM(vocab_size, embed_size, hidden_size, num_layers).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)

    for epoch in range(num_epochs):
        states = (torch.zeros(num_layers, batch_size, hidden_size, device=device),
                  torch.zeros(num_layers, batch_size, hidden_size, device=device))

        for i in range(0, ids.size(1) - seq_length, seq_length):
            inputs = ids[:, i:i + seq_length]
            targets = ids[:, (i + 1):(i + 1) + seq_length]

            outputs, states = model(inputs, states)
            loss = criterion(outputs, targets.reshape(-1))

            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()

            step = (i + 1) // seq_length
            if step % 100 == 0:
                print("Epoch [{}/{}], Step[{}/{}], Loss: {:.4f}, Perplexity: {:5.2f}".format(
                    epoch + 1, num_epochs, step, num_batches, loss.item(), math.exp(loss.item())))

    torch.save(model.state_dict(), "model.ckpt")


if __name__ == "__main__":
    main()

"""kNN-MT: interpolate the NMT model's distribution with retrieved neighbours at each step."""
import argparse
import logging

import faiss
import faiss.contrib.torch_utils
import numpy as np
import torch

from nmt_model import load_model, load_vocab
from testset import iter_batches

logging.basicConfig(level=logging.INFO)


class KNNDatastore:
    def __init__(self, path, dim, k, temperature, vocab_size, device):
        self.k = k
        self.temperature = temperature
        self.vocab_size = vocab_size
        vals = np.load(path + "/vals.npy").astype(np.int64)
        self.vals = torch.from_numpy(vals).to(device)
        index = faiss.read_index(path + "/knn_index")
        self.index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), device.index or 0, index)
        self.dim = dim

    def retrieve(self, queries):
        return self.index.search(queries.contiguous().float(), self.k)

    def knn_probs(self, queries):
        dists, ids = self.retrieve(queries)
        tgt = self.vals[ids]                                         # B, k
        weights = torch.softmax(-dists / self.temperature, dim=-1)
        probs = torch.zeros(queries.size(0), self.vocab_size).to(queries.device)
        probs.scatter_add_(1, tgt, weights)
        return probs


@torch.no_grad()
def translate(model, datastore, src, vocab, lam, max_len):
    memory = model.encode(src)
    ys = torch.full((src.size(0), 1), vocab.bos, dtype=torch.long, device=src.device)
    finished = torch.zeros(src.size(0), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        hidden = model.decode_hidden(ys, memory, src)[:, -1]
        p_nmt = torch.softmax(model.project(hidden), dim=-1)
        p_knn = datastore.knn_probs(hidden)
        p = (1 - lam) * p_nmt + lam * p_knn
        nxt = p.argmax(dim=-1).masked_fill(finished, vocab.pad)
        ys = torch.cat([ys, nxt.unsqueeze(1)], dim=1)
        finished = finished | (nxt == vocab.eos)
    return ys


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--datastore", required=True)
    ap.add_argument("--src", required=True)
    ap.add_argument("--out", default="hyp.txt")
    ap.add_argument("--k", type=int, default=8)
    ap.add_argument("--lambda_", type=float, default=0.7)
    ap.add_argument("--temperature", type=float, default=10.0)
    ap.add_argument("--max_len", type=int, default=128)
    args = ap.parse_args()

    device = torch.device("cuda:0")
    vocab = load_vocab(args.model)
    model = load_model(args.model).to(device)
    model.eval()
    store = KNNDatastore(args.datastore, model.dim, args.k, args.temperature, len(vocab), device)

    n = 0
    with open(args.out, "w") as f:
        for src in iter_batches(args.src, vocab, batch_size=64):
            hyps = translate(model, store, src.to(device), vocab, args.lambda_, args.max_len)
            for row in hyps.tolist():
                f.write(vocab.decode(row) + "\n")
            n += len(hyps)
            logging.info("%d sentences", n)


if __name__ == "__main__":
    main()

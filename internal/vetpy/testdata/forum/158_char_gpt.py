# char level gpt on shakespeare, my own from-scratch version
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from tqdm import trange

block_size = 256
batch_size = 64
n_embd, n_head, n_layer = 384, 6, 6
max_iters = 5000
device = torch.device('cuda')
torch.manual_seed(1337)

text = open('input.txt', encoding='utf-8').read()
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long, device=device)   # 1 MB, lives on the gpu
n = int(0.9 * len(data))
splits = {'train': data[:n], 'val': data[n:]}
offsets = torch.arange(block_size, device=device)


def get_batch(split):
    d = splits[split]
    ix = torch.randint(len(d) - block_size - 1, (batch_size, 1), device=device) + offsets
    return d[ix], d[ix + 1]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(0.2))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(len(vocab), n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, len(vocab))

    def forward(self, idx, targets):
        positions = torch.arange(idx.size(1)).to(idx.device)
        x = self.tok(idx) + self.pos(positions)
        logits = self.head(self.ln(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = GPT().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)


@torch.no_grad()
def estimate(k=100):
    model.eval()
    out = torch.stack([model(*get_batch('val')) for _ in range(k)]).mean().item()
    model.train()
    return out


def lr_at(i, warm=100):
    if i < warm:
        return 3e-4 * (i + 1) / warm
    return 3e-5 + 0.5 * (3e-4 - 3e-5) * (1 + math.cos(math.pi * (i - warm) / (max_iters - warm)))


pbar = trange(max_iters)
for it in pbar:
    for g in opt.param_groups:
        g['lr'] = lr_at(it)
    loss = model(*get_batch('train'))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    pbar.set_postfix(loss=f'{loss.item():.3f}', lr=opt.param_groups[0]['lr'])
    if it % 500 == 0:
        pbar.write(f'val {estimate():.4f}')
torch.save(model.state_dict(), 'gpt.pt')

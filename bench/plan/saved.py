"""What PyTorch's autograd saves for the backward pass: the golden of internal/formula, saved.json.

pip install torch transformers torchvision; python bench/plan/saved.py > internal/formula/testdata/saved.json

Bytes are those of the storages of saved tensors, each once, without parameters. Of decoders they come from models of two
and four layers, so that a layer is told from the rest. "pure" is a model of bfloat16; casts are copies of weights that
autocast makes. Run with torch 2.15, transformers 5.23, torchvision 0.29 on a CPU.
"""
import contextlib
import json
import sys

import torch
import torchvision
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM


def saved(model, run, amp):
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    shapes = {tuple(p.shape) for p in model.parameters()} | {tuple(reversed(p.shape)) for p in model.parameters()}
    values, casts = {}, {}

    def pack(t):
        s = t.untyped_storage()
        if s.data_ptr() not in own:
            cast = tuple(t.shape) in shapes and t.dtype == torch.bfloat16
            (casts if cast else values)[s.data_ptr()] = s.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        with torch.autocast("cpu", torch.bfloat16) if amp == "bf16" else contextlib.nullcontext():
            kept = run(model)  # lives until its storages are counted
    del kept
    return sum(values.values()), sum(casts.values())


def decoder(name, make, batch=2, context=96):
    for amp in ("off", "bf16", "pure"):
        found = []
        for layers in (2, 4):
            torch.manual_seed(0)
            model = make(layers).train()
            if amp == "pure":
                model = model.bfloat16()
            ids = torch.randint(0, 500, (batch, context))
            values, casts = saved(model, lambda m: m(input_ids=ids, labels=ids, use_cache=False).loss, amp)
            found.append((values, casts, sum(p.numel() for p in model.parameters())))
        layer = (found[1][0] - found[0][0]) // 2
        yield dict(model=name, amp=amp, batch=batch, context=context, layer=layer, outside=found[0][0] - 2 * layer,
                   casts=(found[1][1] - found[0][1]) // 2, params=found[0][2])


def llama(layers):
    c = LlamaConfig(hidden_size=256, num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=2, intermediate_size=704,
                    vocab_size=1000, max_position_embeddings=128, attn_implementation="sdpa")
    return LlamaForCausalLM(c)


def qwen3(layers):
    c = Qwen3Config(hidden_size=256, num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=4, head_dim=64,
                    intermediate_size=704, vocab_size=1000, max_position_embeddings=128, tie_word_embeddings=True, attn_implementation="sdpa")
    return Qwen3ForCausalLM(c)


def gpt2(layers):
    c = GPT2Config(n_embd=256, n_layer=layers, n_head=8, vocab_size=1000, n_positions=128, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                   attn_implementation="sdpa")
    return GPT2LMHeadModel(c)


def other(name, make, x):
    for amp in ("off", "bf16"):
        model = make().train()
        values, casts = saved(model, lambda m: m(x).sum(), amp)
        yield dict(model=name, amp=amp, batch=len(x), all=values, casts=casts, params=sum(p.numel() for p in model.parameters()))


def mlp():
    relu = torch.nn.ReLU
    return torch.nn.Sequential(torch.nn.Linear(784, 512), relu(), torch.nn.Linear(512, 256), relu(), torch.nn.Linear(256, 10))


rows = [*decoder("llama", llama), *decoder("qwen3", qwen3), *decoder("gpt2", gpt2)]
rows += other("resnet18", torchvision.models.resnet18, torch.randn(2, 3, 224, 224))
rows += other("resnet50", torchvision.models.resnet50, torch.randn(2, 3, 224, 224))
rows += other("mlp", mlp, torch.randn(32, 784))
json.dump(rows, sys.stdout, indent=1)
print()

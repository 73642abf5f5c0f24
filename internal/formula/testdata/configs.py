"""Random configurations as Transformers writes them, and how many parameters its models of them have: configs.json.

    pip install torch transformers
    python configs.py > configs.json
"""
import json
import os
import random

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import (AutoModelForCausalLM, GemmaConfig, GPT2Config, GPTNeoXConfig, LlamaConfig, MistralConfig, MptConfig,
                          Phi3Config, Qwen2Config, Qwen3Config, ResNetConfig, ResNetForImageClassification, SmolLM3Config)

random.seed(14)
pick = random.choice
coin = lambda: pick([True, False])


def sizes():
    heads, width = pick([4, 8, 12]), pick([32, 64, 80, 128])
    return dict(heads=heads, kv=pick([k for k in (1, 2, 4, heads) if heads % k == 0]), hidden=heads * width, layers=pick([1, 2, 5, 24]),
                ffn=pick([256, 1000, 4096]), vocab=pick([1000, 32000, 50257]), context=pick([128, 1024, 4096]))


def llama(config, **more):
    s = sizes()
    return config(hidden_size=s["hidden"], num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=s["kv"],
                  intermediate_size=s["ffn"], vocab_size=s["vocab"], max_position_embeddings=s["context"], tie_word_embeddings=coin(),
                  pad_token_id=0, bos_token_id=1, eos_token_id=2, **more)


def gpt2():
    s = sizes()
    return GPT2Config(n_layer=s["layers"], n_embd=s["hidden"], n_head=s["heads"], vocab_size=s["vocab"], n_positions=s["context"],
                      n_inner=pick([None, s["ffn"]]), activation_function=pick(["gelu_new", "gelu", "relu"]), tie_word_embeddings=coin())


def neox():
    s = sizes()
    return GPTNeoXConfig(hidden_size=s["hidden"], num_hidden_layers=s["layers"], num_attention_heads=s["heads"], intermediate_size=s["ffn"],
                         vocab_size=s["vocab"], max_position_embeddings=s["context"], tie_word_embeddings=coin(), attention_bias=coin())


def mpt():
    s = sizes()
    return MptConfig(d_model=s["hidden"], n_heads=s["heads"], n_layers=s["layers"], max_seq_len=s["context"], vocab_size=s["vocab"])


def resnet():
    deep = coin()
    return ResNetConfig(layer_type="bottleneck" if deep else "basic", hidden_sizes=[256, 512, 1024, 2048] if deep else [64, 128, 256, 512],
                        depths=[random.randint(1, 6) for _ in range(4)], num_labels=pick([2, 10, 1000]))


kinds = {
    "llama": lambda: llama(LlamaConfig, attention_bias=coin(), mlp_bias=coin(), **({"head_dim": pick([64, 128])} if coin() else {})),
    "mistral": lambda: llama(MistralConfig, head_dim=pick([None, 64, 128])),
    "qwen2": lambda: llama(Qwen2Config),
    "qwen3": lambda: llama(Qwen3Config, head_dim=pick([64, 128]), attention_bias=coin()),
    "gemma": lambda: llama(GemmaConfig, head_dim=pick([64, 256]), attention_bias=coin()),
    "smollm3": lambda: llama(SmolLM3Config, attention_bias=coin(), mlp_bias=coin()),
    "phi3": lambda: llama(Phi3Config),
    "gpt2": gpt2, "gpt_neox": neox, "mpt": mpt, "resnet": resnet,
}
rows = []
for kind, make in kinds.items():
    for _ in range(4):
        config = make()
        with torch.device("meta"):
            model = ResNetForImageClassification(config) if kind == "resnet" else AutoModelForCausalLM.from_config(config)
        model.tie_weights()
        whole = config.to_dict() if coin() else config.to_diff_dict()
        for drop in ("id2label", "label2id"):
            if len(whole.get(drop) or {}) == 1000:
                whole[drop] = {str(i): "" for i in range(1000)}
        kept = {k: v for k, v in whole.items() if v is not None and not k.startswith(("_", "output", "label2id", "rope", "return", "transformers")) and not callable(v)}
        if len(kept.get("id2label") or {}) == 1000:  # as many, in fewer bytes
            del kept["id2label"]
            kept["num_labels"] = 1000
        kept["model_type"] = kind
        rows.append({"parameters": sum(p.numel() for p in {id(p): p for p in model.parameters()}.values()), "config": kept})
print("[\n" + ",\n".join(json.dumps(r, default=str) for r in rows) + "\n]")

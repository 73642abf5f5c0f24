"""The cases of weight normalisation and of positions, for layers_reference.py."""

import math

import peft
import torch
import torch.nn as nn
from transformers import LlamaConfig
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama

import golden
from layers_losses import Maker


def weight_norm(m, make, x, dim):
    """A case by weight_norm's formula. torch._weight_norm computes the same, but takes norms as constants in its second derivatives."""
    make.double()
    v = m.randn(*make.weight.shape)
    g = m.rand(*[n if i == dim else 1 for i, n in enumerate(v.shape)], low=0.5, high=2.0)
    params = {"bias": m.randn(*make.bias.shape), "weight_g": g, "weight_v": v}

    def run(x, bias, weight_g, weight_v):
        weight = weight_v * (weight_g / torch.norm_except_dim(weight_v, 2, dim))
        if dim >= 0:
            torch.testing.assert_close(weight, torch._weight_norm(weight_v, weight_g, dim))
        return torch.func.functional_call(make, {"weight": weight, "bias": bias}, (x,))

    return f"weight_norm_{next(m.count)}", "weight_norm", {"dim": dim}, golden.record(run, {"x": x}, params, ["x", *params], m.g, second=True)


def lora(m, make, x, rank, alpha, dropout):
    """A case of peft's layer beside one of PyTorch, in evaluation, where nothing is dropped, and the weight that it merges to."""
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=["layer"])
    layer = peft.get_peft_model(nn.ModuleDict({"layer": make}), config).base_model.model["layer"].double().eval()
    names = {"weight": "base_layer.weight", "bias": "base_layer.bias", "lora_A": "lora_A.default.weight", "lora_B": "lora_B.default.weight"}
    own = dict(layer.named_parameters())
    params = {n: m.randn(*own[p].shape) for n, p in names.items()}

    def run(x, **p):
        return torch.func.functional_call(layer, {names[n]: t for n, t in p.items()}, (x,))

    case = golden.record(run, {"x": x}, params, ["x", "lora_A", "lora_B"], m.g, second=True)
    layer.load_state_dict({names[n]: t for n, t in params.items()})
    layer.merge()
    case["out.merged"] = layer.base_layer.weight.detach()
    attrs = {"rank": rank, "alpha": alpha, "dropout": dropout, "stride": getattr(make, "stride", (1,))[0], "padding": getattr(make, "padding", (0,))[0]}
    return f"lora_{next(m.count)}", "lora", attrs, case


def rotary(x, positions, base, width, interleaved, stretch):
    """Transformers' apply_rotary_pos_emb, and Llama's by complex numbers for neighbours."""
    width = width or x.shape[-1]
    x, rest = x[..., :width], x[..., width:]
    rate = base ** (-torch.arange(0, width, 2, dtype=torch.double) / width)
    angle = positions.double()[..., None] / stretch * rate
    if interleaved:
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones_like(angle), angle)
        y = torch.view_as_real(turned).flatten(-2)
    else:
        angle = torch.cat((angle, angle), -1)
        a, b = x.chunk(2, -1)
        y = x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()
    return torch.cat((y, rest), -1)


def published(x, start, base, width, model):
    """Transformers' own functions, given angles in float64, for x[b, heads, t, width] at positions from start on."""
    width = width or x.shape[-1]
    positions = torch.arange(start, start + x.shape[-2])
    angle = positions.double()[:, None] * base ** (-torch.arange(0, width, 2, dtype=torch.double) / width)
    if model == "gptj":  # of [b, t, heads, width]
        turned = modeling_gptj.apply_rotary_pos_emb(x[..., :width].transpose(1, 2), angle.sin()[None], angle.cos()[None]).transpose(1, 2)
        return torch.cat((turned, x[..., width:]), -1)
    angle = torch.cat((angle, angle), -1)[None]
    if model == "llama":
        config = LlamaConfig(hidden_size=width, num_attention_heads=1, max_position_embeddings=64, rope_parameters={"rope_type": "default", "rope_theta": base})
        cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(x.detach(), positions[None])
        torch.testing.assert_close(cos, angle.cos(), rtol=0, atol=1e-5)
        torch.testing.assert_close(sin, angle.sin(), rtol=0, atol=1e-5)
    kind = {"llama": modeling_llama, "neox": modeling_gpt_neox}[model]
    return kind.apply_rotary_pos_emb(x, x, angle.cos(), angle.sin())[0]


def slopes(n):
    """As in the paper's code (get_slopes of attention_with_linear_biases)."""
    if math.log2(n).is_integer():
        start = 2 ** (-2 ** -(math.log2(n) - 3))
        return [start * start**i for i in range(n)]
    closest = 2 ** math.floor(math.log2(n))
    return slopes(closest) + slopes(2 * closest)[0::2][: n - closest]


def alibi(x, symmetric):
    t, s = x.shape[-2:]
    far = torch.arange(s, dtype=torch.double)[None] - torch.arange(s - t, s, dtype=torch.double)[:, None]
    far = -far.abs() if symmetric else far
    return x + torch.tensor(slopes(x.shape[1]), dtype=torch.double)[:, None, None] * far


def adapt(g):
    """Yields (name, layer, attrs, tensors)."""
    m = Maker(g)
    for dim in (0, 1, -1):
        yield weight_norm(m, nn.Linear(3, 5), m.randn(2, 3), dim)
        yield weight_norm(m, nn.Linear(1, 4), m.randn(3, 2, 1), dim)
        yield weight_norm(m, nn.Conv2d(2, 3, 2), m.randn(1, 2, 4, 3), dim)
        yield weight_norm(m, nn.Conv1d(3, 2, 3), m.randn(2, 3, 5), dim)
        yield weight_norm(m, nn.Linear(7, 1), m.randn(2, 7), dim)
    for rank, alpha, dropout in ((1, 1, 0.0), (2, 8, 0.0), (3, 1, 0.5)):
        yield lora(m, nn.Linear(3, 5), m.randn(2, 3), rank, alpha, dropout)
        yield lora(m, nn.Linear(1, 4), m.randn(3, 2, 1), rank, alpha, dropout)
        yield lora(m, nn.Linear(6, 1), m.randn(6), rank, alpha, dropout)
        yield lora(m, nn.Conv2d(2, 3, 2), m.randn(1, 2, 4, 3), rank, alpha, dropout)
        yield lora(m, nn.Conv2d(3, 2, 3, stride=2, padding=1), m.randn(2, 3, 5, 4), rank, alpha, dropout)
        yield lora(m, nn.Conv2d(4, 5, 1), m.randn(1, 4, 2, 2), rank, alpha, dropout)
    for i, shape in enumerate(((2, 3, 5, 4), (1, 1, 7, 2), (3, 2, 8), (5, 6), (2, 2, 3, 1, 10))):
        for base, width, interleaved, stretch in ((10000.0, 0, False, 1.0), (10000.0, 0, True, 1.0), (500.0, 2, False, 4.0), (100.0, 2, True, 2.0)):
            t = shape[-2]
            positions = torch.randint(0, 50, (t,) if i % 2 else (shape[0], *[1] * (len(shape) - 3), t), generator=g) if len(shape) > 2 else torch.arange(3, 3 + t)
            yield m.case("rotary", lambda v, base, width, interleaved, stretch: rotary(v["x"], v["positions"], base, width, interleaved, stretch), ["x"],
                         {"x": m.randn(*shape), "positions": positions}, i < 2, base=base, width=width, interleaved=interleaved, stretch=stretch)
    for shape in ((2, 3, 5, 4), (1, 1, 7, 2), (3, 2, 1, 8), (2, 4, 6, 6), (1, 5, 3, 10)):
        for model, base, width, start in (("llama", 10000.0, 0, 0), ("llama", 500000.0, 0, 11), ("neox", 10000.0, 2, 3), ("gptj", 10000.0, 2, 0), ("gptj", 10000.0, 0, 5)):
            yield m.case("rotary", lambda v, base, width, interleaved, start: published(v["x"], start, base, width, model), ["x"],
                         {"x": m.randn(*shape)}, True, base=base, width=width, interleaved=model == "gptj", start=start)
    for shape in ((1, 8, 3, 3), (2, 1, 4, 4), (1, 6, 2, 5), (2, 12, 1, 7), (1, 3, 5, 5)):
        for symmetric in (False, True):
            yield m.case("alibi", lambda v, symmetric: alibi(v["x"], symmetric), ["x"], {"x": m.randn(*shape)}, False, symmetric=symmetric)

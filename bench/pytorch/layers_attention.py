"""The cases of attention and Transformer layers, for layers_reference.py."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import flex_attention

import golden
from layers_losses import Maker


def drawn(m, layer):
    return {n: golden.exact(0.4 * torch.randn(p.shape, generator=m.g) + ("norm" in n and n.endswith("weight"))) for n, p in layer.named_parameters()}


def masks(m, form, n, heads, t, s):
    """Masks in PyTorch's sense: true hides. No query is left without a key."""
    hide = lambda *shape: torch.rand(shape, generator=m.g) < 0.4
    out = {}
    if "keys" in form:
        out["key_padding_mask"] = hide(n, s)
        out["key_padding_mask"][:, 0] = False
    if "addedkeys" in form:
        out["key_padding_mask"] = m.randn(n, s)
    if "pairs" in form or "heads" in form:
        out["attn_mask"] = hide(t, s) if "pairs" in form else hide(n * heads, t, s)
        out["attn_mask"][..., 0] = False
    if "addedpairs" in form:
        out["attn_mask"] = m.randn(t, s)
    if "causal" in form:
        out["attn_mask"] = torch.ones(t, s, dtype=torch.bool).triu(1)
    return out


def multihead(g):
    """Yields (name, layer, attrs, tensors)."""
    m = Maker(g)
    shapes = ((2, 3, 4, 2, 4), (1, 5, 5, 1, 3), (3, 1, 2, 3, 6), (2, 4, 1, 2, 6), (1, 2, 3, 4, 8))  # samples, queries, keys, heads, width
    options = ({}, {"bias": False}, {"kdim": 3}, {"vdim": 5}, {"kdim": 3, "vdim": 2, "bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True},
               {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True}, {"batch_first": True}, {"kdim": 5, "vdim": 5, "add_bias_kv": True})
    forms = ("", "keys", "pairs", "heads", "causal", "addedpairs", "addedkeys addedpairs", "keys pairs", "keys addedpairs")
    for i, option in enumerate(options):
        for j, form in enumerate(forms[i % 2::2] if i else forms):
            n, t, s, heads, width = shapes[(i + j) % len(shapes)]
            if form == "causal":
                s = t
            yield attention(m, option, form, n, t, s, heads, width, same=form == "causal" and "kdim" not in option and "vdim" not in option)


def attention(m, option, form, n, t, s, heads, width, same):
    layer = nn.MultiheadAttention(width, heads, **option).double().train("dropout" not in option)
    params = drawn(m, layer)
    order = (lambda a, b: (b, a)) if option.get("batch_first") else (lambda a, b: (a, b))
    inputs = {"q": m.randn(*order(t, n), width)}
    if not same:
        inputs["k"] = m.randn(*order(s, n), option.get("kdim", width))
        inputs["v"] = m.randn(*order(s, n), option.get("vdim", width))
    inputs.update(masks(m, form.split(), n, heads, t, s))

    def run(q, k=None, v=None, key_padding_mask=None, attn_mask=None, **p):
        k, v = (q, q) if k is None else (k, v)
        return torch.func.functional_call(layer, p, (q, k, v), {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask, "average_attn_weights": False})

    grad = [k for k in inputs if k in "qkv"] + list(params)
    tensors = golden.record(run, inputs, params, grad, m.g, outputs=("y1", "y2"), second=True)
    attrs = {"heads": heads, "causal": "causal" in form, **option}
    return f"MultiheadAttention_{next(m.count)}", "MultiheadLayer", attrs, tensors


def transformer(g):
    """Encoders and decoders, with norms before and behind."""
    m = Maker(g)
    options = ({}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": True, "norm_first": True}, {"bias": False}, {"layer_norm_eps": 0.1, "activation": "gelu", "norm_first": True})
    shapes = ((3, 2, 4), (1, 3, 2), (5, 1, 3))  # positions, samples, keys
    for i, option in enumerate(options):
        for form in ("", "causal", "keys"):
            t, n, s = shapes[(i + len(form)) % 3]
            yield stack(m, option, form, t, n, s, decoder=False, layers=1 + (form == "keys" and i in (0, 3)))
            yield stack(m, option, form, t, n, s, decoder=True, layers=1 + (form == "keys" and i in (0, 3)))


def stack(m, option, form, t, n, s, decoder, layers, final=None):
    """A stack, with a norm at the end where final says so, or where it has several layers."""
    width, heads, inner = 4, 2, 5
    option = dict(option)
    dropout, final = option.pop("dropout", 0.0), layers > 1 if final is None else final
    first = option.get("batch_first", False)
    order = (lambda a, b: (b, a)) if first else (lambda a, b: (a, b))
    one = (nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer)(width, heads, inner, dropout, **option)
    norm = nn.LayerNorm(width) if final else None
    if decoder:
        layer = nn.TransformerDecoder(one, layers, norm).double()
    else:
        layer = nn.TransformerEncoder(one, layers, norm, enable_nested_tensor=False).double()
    layer.train(not dropout)  # which drops nothing in evaluation
    params = drawn(m, layer)
    inputs = {"x": m.randn(*order(t, n), width)}
    ban = torch.ones(t, t, dtype=torch.bool).triu(1) if form == "causal" else None
    if decoder:
        inputs["memory"] = m.randn(*order(s, n), width)
    if form == "keys":
        inputs["keys"] = torch.rand((n, s if decoder else t), generator=m.g) < 0.4
        inputs["keys"][:, 0] = False

    def run(x, memory=None, keys=None, **p):
        if decoder:
            return torch.func.functional_call(layer, p, (x, memory), {"tgt_mask": ban, "memory_key_padding_mask": keys})
        return torch.func.functional_call(layer, p, (x,), {"mask": ban, "src_key_padding_mask": keys})

    grad = [k for k in inputs if k != "keys"] + list(params)
    with sdpa_kernel(SDPBackend.MATH):  # the others are derived once
        tensors = golden.record(run, inputs, params, grad, m.g, second=form != "causal")
    kind = "TransformerDecoder" if decoder else "TransformerEncoder"
    return f"{kind}_{next(m.count)}", kind, {"heads": heads, "inner": inner, "layers": layers, "causal": form == "causal", **({"dropout": dropout} if dropout else {}), **({"final": final} if final != (layers > 1) else {}), **option}, tensors


FORMS = ({}, {"causal": True}, {"left": 2, "right": 1}, {"left": 1, "right": 0}, {"left": -1, "right": 1}, {"left": 3, "right": -1},
         {"causal": True, "left": 2, "right": 5}, {"mask": "bool", "left": 2, "right": 2}, {"mask": "added", "causal": True}, {"mask": "added", "left": 1, "right": 1},
         {"mask": "bool"}, {"scale": 0.3}, {"scale": -0.7, "causal": True, "mask": "keys"})


def functional(g):
    """scaled_dot_product_attention with fewer heads of keys, windows, and queries that stand behind keys of a cache."""
    m = Maker(g)
    shapes = ((2, 4, 2, 5, 5, 4, 3), (1, 6, 1, 3, 7, 2, 2), (1, 3, 3, 1, 6, 5, 4), (2, 6, 3, 4, 9, 8, 1), (1, 8, 2, 2, 2, 6, 4), (3, 2, 2, 6, 6, 1, 2))
    for i, shape in enumerate(shapes):
        for j, form in enumerate(FORMS):
            if (i + j) % 2 == 0 or i < 2:
                yield dot_product(m, *shape, **form)


def dot_product(m, b, h, groups, t, s, d, e, causal=False, left=-1, right=-1, mask=None, scale=0.0):
    start = s - t
    inputs = {"q": m.randn(b, h, t, d), "k": m.randn(b, groups, s, d), "v": m.randn(b, groups, s, e)}
    if mask == "bool":
        inputs["mask"] = torch.rand((b, h, t, s), generator=m.g) < 0.6
        inputs["mask"] |= torch.eye(t, s, dtype=torch.bool).roll(start, 1)
    if mask == "keys":
        inputs["mask"] = torch.rand((s,), generator=m.g) < 0.6
        inputs["mask"][0] = True
    if mask == "added":
        inputs["mask"] = m.randn(1, h, t, s)
    at, key = torch.arange(start, s)[:, None], torch.arange(s)
    seen = torch.ones(t, s, dtype=torch.bool)
    if causal:
        seen &= key <= at
    if left >= 0:
        seen &= key >= at - left
    if right >= 0:
        seen &= key <= at + right
    plain = mask is None and left < 0 and right < 0
    if plain and causal:
        torch.testing.assert_close(seen, causal_lower_right(t, s)._materialize().bool())

    def run(q, k, v, mask=None):
        kw = {"enable_gqa": h != groups, "scale": scale or None}
        if plain and not causal:
            return F.scaled_dot_product_attention(q, k, v, **kw)
        allowed = seen
        if mask is not None:
            allowed = seen & mask if mask.dtype == torch.bool else mask.masked_fill(~seen, -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, allowed, **kw)

    if mask is None and not plain:
        flex = flex_attention(inputs["q"], inputs["k"], inputs["v"], enable_gqa=h != groups, scale=scale or None,
                              score_mod=lambda score, b, h, i, j: torch.where(seen[i, j], score, -torch.inf))
        torch.testing.assert_close(flex, run(inputs["q"], inputs["k"], inputs["v"]))
    grad = ["q", "k", "v"] + ["mask"] * (mask == "added")
    with sdpa_kernel(SDPBackend.MATH):  # the others are derived once
        tensors = golden.record(run, inputs, None, grad, m.g, second=True)
    attrs = {"causal": causal, "left": left, "right": right, "start": start, "scale": scale}
    return f"attention_{next(m.count)}", "attention", attrs, tensors

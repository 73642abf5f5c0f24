"""Golden vectors of layers and losses, with the gradients of inputs and parameters.

    python nn_reference.py [--dir nn/testdata]

Writes CASE.safetensors per case and index.json, a list of {name, layer, attrs, note}.
In a case: in.* inputs, param.* parameters, buffer.* buffers before, out.* outputs
(buffers after as out.running_mean …), up.* the upstream gradient of an output,
grad.* the gradients it causes. Computed in float64, stored in float32; labels
int64, masks bool.
"""

import argparse
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

import common
import golden

SEED = 7
G = torch.Generator().manual_seed(SEED)


def randn(*shape, scale=1.0):
    return golden.exact(scale * torch.randn(shape, generator=G))


def layer(module, **inputs):
    """A case of one module whose parameters are drawn here: out.y, gradients of everything floating."""
    module = module.double()
    params = {}
    for name, p in module.named_parameters():
        centre = 1.0 if "norm" in type(module).__name__.lower() and name == "weight" else 0.0
        params[name] = centre + randn(*p.shape, scale=0.3)
    params = {n: golden.exact(p) for n, p in params.items()}

    def run(**t):
        return torch.func.functional_call(
            module, {n: t[n] for n in params}, tuple(t[n] for n in inputs))

    grad = [n for n, t in inputs.items() if t.is_floating_point()] + list(params)
    return golden.record(run, inputs, params, grad, G)


def function(fn, grad=("x",), **inputs):
    return golden.record(fn, inputs, grad=list(grad), generator=G)


def batch_norm(module, *shape):
    """Two updates in training, then evaluation with the statistics they left."""
    module = module.double()
    c = shape[1]
    params = {"weight": golden.exact(1 + randn(c, scale=0.3)), "bias": randn(c, scale=0.3)}
    buffers = {"running_mean": randn(c, scale=0.3), "running_var": golden.exact(1 + randn(c).abs())}
    module.load_state_dict({**params, **buffers, "num_batches_tracked": torch.tensor(0)})
    # A mean far from 0 shows a variance computed as E[x²] − E[x]².
    inputs = {"x1": golden.exact(3 + 2 * randn(*shape)), "x2": golden.exact(randn(*shape) - 5), "x3": randn(*shape)}
    after = {}

    def run(x1, x2, x3, weight, bias):
        outs = []
        for i, x in enumerate((x1, x2, x3), 1):
            module.train(i < 3)
            # Fresh parameters, the module's own buffers: they are what accumulates.
            outs.append(torch.func.functional_call(module, {"weight": weight, "bias": bias}, x))
            if i < 3:
                after[f"out.running_mean{i}"] = module.running_mean.clone()
                after[f"out.running_var{i}"] = module.running_var.clone()
        return tuple(outs)

    case = golden.record(run, inputs, params, ["x1", "x2", "x3", "weight", "bias"], G, outputs=("y1", "y2", "y3"))
    return {**case, **{f"buffer.{n}": b for n, b in buffers.items()}, **after}


def conv(n, c_in, h, w, c_out, kernel, bias=True, **attrs):
    return layer(nn.Conv2d(c_in, c_out, kernel, bias=bias, **attrs), x=randn(n, c_in, h, w))


def attention(l, s, mask=None, **attrs):
    """scaled_dot_product_attention; mask is True where a key takes part, [B, S]."""
    inputs = {"q": randn(2, 3, l, 5), "k": randn(2, 3, s, 5), "v": randn(2, 3, s, 4)}
    if mask is not None:
        inputs["key_mask"] = mask

    def run(q, k, v, key_mask=None):
        allowed = None if key_mask is None else key_mask[:, None, None, :].expand(2, 1, l, s)
        if allowed is not None and attrs.get("is_causal"):
            return F.scaled_dot_product_attention(q, k, v, allowed & torch.ones(l, s, dtype=torch.bool).tril())
        return F.scaled_dot_product_attention(q, k, v, allowed, **attrs)

    return function(run, ("q", "k", "v"), **inputs)


def multihead(causal, padding):
    """MultiheadAttention, batch first, on itself. PyTorch's key_padding_mask is True where a key is ignored."""
    module = nn.MultiheadAttention(12, 3, batch_first=True).double()
    params = {n: randn(*p.shape, scale=0.3) for n, p in module.named_parameters()}
    inputs = {"x": randn(2, 5, 12)}
    if padding:
        inputs["key_padding_mask"] = torch.tensor([[False] * 5, [False, False, False, True, True]])
    ban = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None

    def run(x, key_padding_mask=None, **p):
        return torch.func.functional_call(
            module, p, (x, x, x),
            {"need_weights": False, "attn_mask": ban, "key_padding_mask": key_padding_mask})[0]

    return golden.record(run, inputs, params, ["x", *params], G)


def cross_entropy(**attrs):
    target = torch.tensor([0, 4, 2, 2, 1, -100, 3]) if "ignore_index" in attrs else torch.tensor([0, 4, 2, 2, 1, 3, 3])
    return function(lambda x, target: F.cross_entropy(x, target, **attrs), x=randn(7, 5, scale=3), target=target)


def squared(**attrs):
    return function(lambda x, target: F.mse_loss(x, target, **attrs), ("x", "target"), x=randn(3, 5), target=randn(3, 5))


def binary(**attrs):
    x = randn(4, 3, scale=3)
    x[0] = torch.tensor([80.0, -80.0, 0.0])
    target = golden.exact(torch.rand(4, 3, generator=G))
    target[:2] = target[:2].round()
    return function(lambda x, target: F.binary_cross_entropy_with_logits(x, target, **attrs), x=x, target=target)


def activation(fn):
    x = torch.cat([randn(9, scale=2), torch.tensor([0.0, -0.0, 10.0, -10.0, 1e-4, -3.0]).double()])
    return function(lambda x: fn(x), x=golden.exact(x).view(3, 5))


def cases():
    """Yields (name, layer, attrs, tensors, note)."""
    def case(name, kind, tensors, note="", **attrs):
        return name, kind, attrs, tensors, note

    yield case("linear", "Linear", layer(nn.Linear(5, 3), x=randn(4, 5)), in_features=5, out_features=3, bias=True)
    yield case("linear_no_bias_3d", "Linear", layer(nn.Linear(7, 2, bias=False), x=randn(2, 3, 7)),
               in_features=7, out_features=2, bias=False)

    for name, sizes, attrs in (
        ("conv2d", (2, 3, 7, 6, 4, 3), {}),
        ("conv2d_padding", (2, 3, 5, 6, 4, 3), dict(padding=1)),
        ("conv2d_stride", (1, 2, 9, 8, 3, 3), dict(stride=2, padding=1)),
        ("conv2d_dilation", (1, 2, 9, 10, 3, 3), dict(dilation=2, padding=2)),
        ("conv2d_groups", (2, 4, 6, 5, 6, 3), dict(groups=2, padding=1)),
        ("conv2d_depthwise", (2, 3, 5, 5, 3, 3), dict(groups=3, padding=1)),
        ("conv2d_uneven", (2, 3, 8, 11, 2, (3, 5)), dict(stride=(2, 3), padding=(0, 2), dilation=(2, 1))),
        ("conv2d_1x1_stride", (2, 5, 7, 7, 4, 1), dict(stride=2, bias=False)),
        ("conv2d_stem", (1, 3, 17, 17, 2, 7), dict(stride=2, padding=3, bias=False)),
    ):
        n, c_in, h, w, c_out, kernel = sizes
        yield case(name, "Conv2d", conv(n, c_in, h, w, c_out, kernel, **attrs),
                   in_channels=c_in, out_channels=c_out, kernel=kernel, **attrs)

    note = "y1, y2: training; y3: evaluation; running statistics after each update, with the unbiased variance"
    for name, module, shape, attrs in (
        ("batchnorm2d", nn.BatchNorm2d(3), (4, 3, 5, 2), dict(eps=1e-5, momentum=0.1)),
        ("batchnorm2d_momentum", nn.BatchNorm2d(2, eps=1e-2, momentum=0.3), (2, 2, 3, 3), dict(eps=1e-2, momentum=0.3)),
        ("batchnorm1d", nn.BatchNorm1d(4), (6, 4), dict(eps=1e-5, momentum=0.1)),
        ("batchnorm1d_length", nn.BatchNorm1d(3), (2, 3, 7), dict(eps=1e-5, momentum=0.1)),
    ):
        yield case(name, type(module).__name__, batch_norm(module, *shape), note, features=shape[1], **attrs)

    yield case("layernorm", "LayerNorm", layer(nn.LayerNorm(6), x=randn(2, 3, 6)), shape=[6], eps=1e-5)
    yield case("layernorm_2d_eps", "LayerNorm", layer(nn.LayerNorm((3, 4), eps=1e-2), x=5 + randn(2, 3, 4)),
               shape=[3, 4], eps=1e-2)
    yield case("rmsnorm", "RMSNorm", layer(nn.RMSNorm(6, eps=1e-6), x=randn(2, 3, 6)), shape=[6], eps=1e-6)

    index = torch.tensor([[1, 4, 1], [0, 6, 1]])
    yield case("embedding", "Embedding", layer(nn.Embedding(7, 4), index=index),
               "row 1 is looked up three times, rows 2, 3 and 5 never", num_embeddings=7, dim=4)

    for name, module, shape, attrs in (
        ("maxpool2d", nn.MaxPool2d(2), (2, 2, 5, 6), dict(kernel=2, stride=2, padding=0)),
        ("maxpool2d_padding", nn.MaxPool2d(3, 2, 1), (1, 3, 7, 8), dict(kernel=3, stride=2, padding=1)),
        ("avgpool2d", nn.AvgPool2d(2), (2, 2, 5, 6), dict(kernel=2, stride=2, padding=0)),
        ("avgpool2d_padding", nn.AvgPool2d(3, 2, 1), (1, 3, 7, 8), dict(kernel=3, stride=2, padding=1, count_include_pad=True)),
        ("avgpool2d_exclude_padding", nn.AvgPool2d(3, 2, 1, count_include_pad=False), (1, 2, 5, 5),
         dict(kernel=3, stride=2, padding=1, count_include_pad=False)),
        ("adaptive_avgpool2d", nn.AdaptiveAvgPool2d(1), (2, 3, 4, 5), dict(output=1)),
    ):
        yield case(name, type(module).__name__, layer(module, x=randn(*shape)), **attrs)

    yield case("relu", "ReLU", activation(F.relu))
    yield case("gelu", "GELU", activation(F.gelu))
    yield case("gelu_tanh", "GELUTanh", activation(lambda x: F.gelu(x, approximate="tanh")))
    yield case("silu", "SiLU", activation(F.silu))
    yield case("sigmoid", "Sigmoid", activation(torch.sigmoid))
    yield case("tanh", "Tanh", activation(torch.tanh))
    yield case("softmax", "softmax", function(lambda x: x.softmax(-1), x=randn(3, 5, scale=3)), dim=-1)
    yield case("softmax_middle", "softmax", function(lambda x: x.softmax(1), x=randn(2, 5, 3, scale=3)), dim=1)
    yield case("log_softmax", "log_softmax", function(lambda x: x.log_softmax(-1), x=randn(3, 5, scale=3)), dim=-1)

    padding = torch.tensor([[True] * 6, [True, True, True, True, False, False]])
    yield case("attention", "scaled_dot_product_attention", attention(4, 6), is_causal=False)
    yield case("attention_causal", "scaled_dot_product_attention", attention(6, 6, is_causal=True), is_causal=True)
    yield case("attention_scale", "scaled_dot_product_attention", attention(4, 6, scale=0.25), is_causal=False, scale=0.25)
    masked = "key_mask: true where the key takes part"
    yield case("attention_padding", "scaled_dot_product_attention", attention(4, 6, padding), masked, is_causal=False)
    yield case("attention_causal_padding", "scaled_dot_product_attention", attention(6, 6, padding, is_causal=True),
               masked, is_causal=True)
    yield case("multihead", "MultiheadAttention", multihead(False, False), embed=12, heads=3, causal=False)
    ignored = "key_padding_mask: true where the key is ignored (PyTorch's sense)"
    yield case("multihead_causal_padding", "MultiheadAttention", multihead(True, True), ignored,
               embed=12, heads=3, causal=True)

    for reduction in ("mean", "sum", "none"):
        yield case(f"cross_entropy_{reduction}", "cross_entropy", cross_entropy(reduction=reduction), reduction=reduction)
        attrs = dict(label_smoothing=0.1, reduction=reduction)
        yield case(f"cross_entropy_smooth_{reduction}", "cross_entropy", cross_entropy(**attrs), **attrs)
        attrs = dict(ignore_index=-100, reduction=reduction)
        yield case(f"cross_entropy_ignore_{reduction}", "cross_entropy", cross_entropy(**attrs), **attrs)
        attrs = dict(ignore_index=-100, label_smoothing=0.1, reduction=reduction)
        yield case(f"cross_entropy_smooth_ignore_{reduction}", "cross_entropy", cross_entropy(**attrs), **attrs)
        yield case(f"mse_{reduction}", "mse_loss", squared(reduction=reduction), reduction=reduction)
        yield case(f"bce_logits_{reduction}", "binary_cross_entropy_with_logits", binary(reduction=reduction),
                   reduction=reduction)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "nn/testdata")
    directory = parser.parse_args().dir
    common.deterministic(SEED)
    index = []
    for name, kind, attrs, tensors, note in cases():
        common.save_tensors(directory / f"{name}.safetensors", golden.narrow(tensors))
        index.append({"name": name, "layer": kind, "attrs": attrs, "note": note})
    common.save_json(directory / "index.json", {"versions": common.versions(), "cases": index})
    print(f"{len(index)} cases in {directory}")


if __name__ == "__main__":
    main()

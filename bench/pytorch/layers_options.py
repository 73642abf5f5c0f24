"""The cases of every pair of values of two options of a layer, for layers_reference.py."""

import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

import golden
from layers_attention import attention, stack
from layers_losses import Maker
from layers_recurrent import case as recurrent
from layers_recurrent import cell
from layers_spatial import layer


def pairwise(choices, valid=lambda o: True):
    """As few choices of all options as have each pair of two options' values that any valid choice has."""
    every = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
    left = [(o, {(a, o[a], b, o[b]) for a, b in itertools.combinations(o, 2)}) for o in every if valid(o)]
    missing = set().union(*(pairs for _, pairs in left))
    while missing:
        best, pairs = max(left, key=lambda row: len(row[1] & missing))
        missing -= pairs
        yield best


def given(options):
    """Without the options that are at their default, which PyTorch's constructors have too."""
    return {k: v for k, v in options.items() if v is not None}


def recurrents(g):
    """Yields (name, layer, attrs, tensors) of recurrent layers: every option with every other, states in or not, packed or not."""
    m = Maker(g)
    sizes = itertools.cycle(((3, 2, 2, 2), (2, 1, 3, 3), (4, 3, 1, 2), (1, 2, 2, 3), (5, 2, 1, 2)))  # steps, samples, width, hidden
    own = {nn.LSTM: {"proj_size": (None, 1)}, nn.GRU: {}, nn.RNN: {"nonlinearity": (None, "relu")}}
    for kind, more in own.items():
        choices = {"bias": (None, False), "num_layers": (None, 2), "bidirectional": (None, True), "batch_first": (None, True), "dropout": (None, 0.5), **more,
                   "state": (False, True), "packed": (False, True)}
        for o in pairwise(choices, lambda o: not o["dropout"] or o["num_layers"]):
            state, packed = o.pop("state"), o.pop("packed")
            yield recurrent(m, g, kind, next(sizes), state, packed, given(o))
    for kind, more in ((nn.LSTMCell, {}), (nn.GRUCell, {}), (nn.RNNCell, {"nonlinearity": (None, "relu")})):
        for i, o in enumerate(pairwise({"bias": (None, False), **more, "state": (False, True), "n": (0, 3)})):
            state, n = o.pop("state"), o.pop("n")
            yield cell(m, g, kind, n, 1 + i, 2, state, given(o))


FORMS = ("", "keys", "pairs", "heads", "causal", "keys causal", "addedpairs", "addedkeys addedpairs", "keys pairs", "keys addedpairs")


def attentions(g):
    """Likewise attention layers, with every form of masks, and Transformer layers."""
    m = Maker(g)
    shapes = itertools.cycle(((2, 3, 4, 2, 4), (1, 5, 5, 1, 3), (3, 1, 2, 3, 3), (2, 4, 1, 2, 2), (1, 2, 3, 2, 4)))  # samples, queries, keys, heads, width
    choices = {"bias": (None, False), "kdim": (None, 5), "vdim": (None, 2), "add_bias_kv": (None, True), "add_zero_attn": (None, True), "batch_first": (None, True),
               "dropout": (None, 0.5), "form": FORMS}
    for o in pairwise(choices):
        form = o.pop("form")
        n, t, s, heads, width = next(shapes)
        if o["vdim"] == width:
            o["vdim"] += 1
        causal = "causal" in form
        yield attention(m, given(o), form, n, t, t if causal else s, heads, width, same=causal and not o["kdim"] and not o["vdim"])
    for decoder in (False, True):
        choices = {"norm_first": (None, True), "activation": (None, "gelu"), "batch_first": (None, True), "bias": (None, False), "layer_norm_eps": (None, 0.1),
                   "dropout": (None, 0.5), "layers": (1, 2), "final": (False, True), "form": ("", "causal", "keys")}
        for i, o in enumerate(pairwise(choices)):
            form, layers, final = o.pop("form"), o.pop("layers"), o.pop("final")
            yield stack(m, given(o), form, *((2, 2, 3), (1, 1, 1), (3, 1, 2))[i % 3], decoder, layers, final)
    for i, o in enumerate(pairwise({"causal": (False, True), "hidden": (False, True), "bias": (True, False), "window": (None, (1, 0), (-1, 2))})):
        yield itself(m, *((2, 4, 2, 4), (1, 1, 3, 3), (3, 5, 1, 2))[i % 3], **o)


def itself(m, n, t, heads, width, causal, hidden, bias, window):
    """MultiheadAttention, batch first, on itself, where a position sees some before and behind."""
    made = nn.MultiheadAttention(width, heads, bias=bias, batch_first=True).double()
    params = {name: m.randn(*p.shape, scale=0.3) for name, p in made.named_parameters()}
    inputs = {"x": m.randn(n, t, width)}
    far = torch.arange(t)[None] - torch.arange(t)[:, None]
    ban = far > 0 if causal else torch.zeros(t, t, dtype=torch.bool)
    left, right = window or (-1, -1)
    if left >= 0:
        ban = ban | (far < -left)
    if right >= 0:
        ban = ban | (far > right)
    if hidden:  # but for each position itself
        inputs["key_padding_mask"] = torch.zeros(n, t, dtype=torch.bool)
        inputs["key_padding_mask"][:, -1] = t > 1 and left < 0

    def run(x, key_padding_mask=None, **p):
        # With weights the products are written out, and derived twice.
        return torch.func.functional_call(made, p, (x, x, x), {"attn_mask": ban, "key_padding_mask": key_padding_mask})[0]

    attrs = dict(heads=heads, causal=causal, bias=bias, left=left, right=right)
    return f"MultiheadAttention_{next(m.count)}", "MultiheadAttention", attrs, golden.record(run, inputs, params, ["x", *params], m.g, second=True)


def convolutions(g):
    """Likewise convolutions and their transposes, with samples and without."""
    m = Maker(g)
    sides = itertools.cycle(((5, 3), (7, 2), (6, 3)))

    def possible(o):
        return not (o["padding"] == "same" and o["stride"]) and not (o["padding_mode"] and not o["padding"])

    choices = {"stride": (None, 2), "padding": (None, 2, "same"), "dilation": (None, 2), "groups": (None, 2), "bias": (None, False),
               "padding_mode": (None, "reflect", "replicate", "circular"), "samples": (2, 0)}
    for cls, dims in ((nn.Conv1d, 1), (nn.Conv2d, 2)):
        for o in pairwise(choices, possible):
            (size, kernel), n, o = next(sides), o.pop("samples"), given(o)
            lead = (n,) if n else ()
            shape = (size, size + 1)[:dims]
            yield layer(m, cls(2, 4, kernel, **o), {"x": m.randn(*lead, 2, *shape)}, out=4, kernel=kernel, **o)
    choices = {"stride": (None, 3), "padding": (None, 1), "output_padding": (None, 1), "dilation": (None, 2), "groups": (None, 2), "bias": (None, False), "samples": (2, 0), "sized": (False, True)}

    def transposable(o):
        return not o["output_padding"] or not o["sized"] and (o["stride"] or o["dilation"])

    for cls, dims in ((nn.ConvTranspose1d, 1), (nn.ConvTranspose2d, 2)):
        for o in pairwise(choices, transposable):
            (size, kernel), n, sized, o = next(sides), o.pop("samples"), o.pop("sized"), given(o)
            lead = (n,) if n else ()
            shape = (size - 2, size - 1)[:dims]
            stride, reach = o.get("stride", 1), o.get("dilation", 1) * (kernel - 1)
            size = [(s - 1) * stride - 2 * o.get("padding", 0) + reach + 1 + max(0, stride - 1) for s in shape]
            call = (lambda mod, x: mod(x, output_size=size)) if sized else None
            yield layer(m, cls(2, 4, kernel, **o), {"x": m.randn(*lead, 2, *shape)}, call, out=4, kernel=kernel, **o, **({"size": size} if sized else {}))


def losses(g):
    """Likewise losses, with every reduction."""
    m = Maker(g)
    shapes = itertools.cycle(((3, 5), (1, 2), (7, 3), (5, 4)))
    reductions = ("mean", "sum", "none")

    def made(kind, f, grad, inputs, optional=None, second=True, **choices):
        """Cases of a loss of operands, of which optional ones are there or not."""
        optional = optional or {}
        for o in pairwise({**choices, **{n: (False, True) for n in optional}, "reduction": reductions}):
            shape = next(shapes)
            operands = inputs(shape)
            order = list(operands)
            operands.update({n: draw(shape) for n, draw in optional.items() if o.pop(n)})
            yield m.case(kind, lambda t, **a: f(*(t[n] for n in order), **{n: t[n] for n in optional if n in t}, **a), grad, operands, second, **o)

    numbered = lambda s: {"x": m.randn(*s, scale=2), "target": torch.randint(0, s[1], s[:1], generator=g)}
    classes = {"weight": lambda s: m.rand(s[1], low=0.1, high=2)}
    ignored = {"ignore_index": (-100, 1)}
    yield from made("nll_loss", F.nll_loss, ["x"], numbered, classes, **ignored)
    yield from made("cross_entropy", F.cross_entropy, ["x"], numbered, classes, label_smoothing=(0.0, 0.15), **ignored)
    yield from made("multi_margin_loss", F.multi_margin_loss, ["x"], numbered, classes, False, p=(1, 2), margin=(1.0, 0.3))
    pair = lambda s: {"x": m.randn(*s), "x2": m.randn(*s), "x3": m.randn(*s)}
    yield from made("triplet_margin_loss", F.triplet_margin_loss, ["x", "x2", "x3"], pair, margin=(1.0, 0.4), p=(2.0, 1.0, 3.0), swap=(False, True), eps=(1e-6, 0.1))
    spread = lambda s: {"x": m.randn(*s), "target": m.randn(*s), "variance": m.rand(*s, low=0.1, high=2)}
    yield from made("gaussian_nll_loss", F.gaussian_nll_loss, ["x", "target", "variance"], spread, full=(False, True), eps=(1e-6, 0.7))
    rates = lambda s: {"x": m.rand(*s, low=0.2, high=2), "target": m.rand(*s, high=4)}
    yield from made("poisson_nll_loss", F.poisson_nll_loss, ["x"], rates, log_input=(True, False), full=(False, True), eps=(1e-8, 0.1))
    shares = lambda s: {"x": m.rand(*s, low=0.05, high=0.95), "target": m.rand(*s)}
    weights = {"weight": lambda s: m.rand(*s[-1:])}
    yield from made("binary_cross_entropy", F.binary_cross_entropy, ["x"], shares, weights)
    logits = lambda s: {"x": m.randn(*s, scale=3), "target": m.rand(*s)}
    yield from made("bce_with_logits", F.binary_cross_entropy_with_logits, ["x", "target"], logits, {**weights, "pos_weight": lambda s: m.rand(*s[-1:], high=4)})
    yield from made("kl_div", F.kl_div, ["x"], lambda s: {"x": m.randn(*s), "target": m.rand(*s, low=0.1)}, log_target=(False, True))
    signs = lambda s: {"x": m.randn(*s).abs(), "target": m.signs(*s)}
    yield from made("hinge_embedding_loss", F.hinge_embedding_loss, ["x"], signs, margin=(1.0, 0.4))
    ranked = lambda s: {"x": m.randn(*s), "x2": m.randn(*s), "target": m.signs(*s)}
    yield from made("margin_ranking_loss", F.margin_ranking_loss, ["x", "x2"], ranked, margin=(0.0, 0.5))
    turned = lambda s: {"x": m.randn(*s), "x2": m.randn(*s), "target": m.signs(*s[:1])}
    yield from made("cosine_embedding_loss", F.cosine_embedding_loss, ["x", "x2"], turned, margin=(0.0, 0.3))

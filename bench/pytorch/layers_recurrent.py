"""The cases of recurrent layers, for layers_reference.py: every option, states in and out, packed sequences."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import golden
from layers_losses import Maker


SIZES = ((4, 3, 2, 3), (1, 2, 3, 2), (5, 1, 1, 4), (3, 4, 5, 3), (2, 2, 4, 2), (6, 3, 3, 5))  # steps, samples, width, hidden
OPTIONS = ({}, {"bias": False}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 3, "bidirectional": True},
           {"batch_first": True}, {"batch_first": True, "bidirectional": True, "bias": False})


def cases(kind, *extra):
    """The function that yields (name, layer, attrs, tensors) of a kind, over all its options."""
    def run(g):
        m = Maker(g)
        for i, option in enumerate(OPTIONS + extra):
            for state, packed in ((False, False), (True, False), (True, True)):
                yield case(m, g, kind, SIZES[(i + packed) % len(SIZES)], state, packed, option)
    return run


lstm = cases(nn.LSTM, {"proj_size": 1}, {"proj_size": 1, "bidirectional": True, "num_layers": 2, "batch_first": True})
gru = cases(nn.GRU)
rnn = cases(nn.RNN, {"nonlinearity": "relu"}, {"nonlinearity": "relu", "bidirectional": True, "num_layers": 2})


def case(m, g, kind, size, state, packed, option):
    steps, n, width, hidden = size
    layer = kind(width, hidden, **option).double().train("dropout" not in option)
    params = {name: golden.exact(0.6 * torch.randn(p.shape, generator=g)) for name, p in layer.named_parameters()}
    first = option.get("batch_first", False)
    inputs = {"x": m.randn(*((n, steps) if first else (steps, n)), width)}
    rows = option.get("num_layers", 1) * (2 if option.get("bidirectional") else 1)
    if state:
        inputs["h"] = m.randn(rows, n, option.get("proj_size", 0) or hidden)
        if kind is nn.LSTM:
            inputs["c"] = m.randn(rows, n, hidden)
    if packed:
        inputs["lengths"] = torch.randint(1, steps + 1, (n,), generator=g)
        inputs["lengths"][-1] = steps

    def run(x, h=None, c=None, lengths=None, **p):
        start = None if h is None else h if c is None else (h, c)
        if lengths is not None:
            x = pack_padded_sequence(x, lengths, first, enforce_sorted=False)
        args = (x,) if start is None else (x, start)
        y, end = torch.func.functional_call(layer, p, args)
        if lengths is not None:
            y, _ = pad_packed_sequence(y, first)
        return (y, *end) if isinstance(end, tuple) else (y, end)

    outputs = ("y1", "y2", "y3") if kind is nn.LSTM else ("y1", "y2")
    grad = [k for k in inputs if k != "lengths"] + list(params)
    tensors = golden.record(run, inputs, params, grad, g, outputs=outputs, second=True)
    return f"{kind.__name__}_{next(m.count)}", kind.__name__, {"hidden": hidden, **option}, tensors


def cells(g):
    """One step of each kind, from zeros and from a state, with and without samples."""
    m = Maker(g)
    for kind, extra in ((nn.LSTMCell, ({},)), (nn.GRUCell, ({},)), (nn.RNNCell, ({}, {"nonlinearity": "relu"}))):
        for option in (*extra, {"bias": False}):
            for n, width, hidden in ((2, 3, 4), (1, 1, 1), (5, 2, 3), (0, 4, 2), (3, 7, 5)):
                for state in (False, True):
                    yield cell(m, g, kind, n, width, hidden, state, option)


def cell(m, g, kind, n, width, hidden, state, option):
    """n of 0: a sample without a dimension for them."""
    layer = kind(width, hidden, **option).double()
    params = {name: golden.exact(0.6 * torch.randn(p.shape, generator=g)) for name, p in layer.named_parameters()}
    lead = (n,) if n else ()
    inputs = {"x": m.randn(*lead, width)}
    if state:
        inputs["h"] = m.randn(*lead, hidden)
        if kind is nn.LSTMCell:
            inputs["c"] = m.randn(*lead, hidden)

    def run(x, h=None, c=None, **p):
        start = () if h is None else (h,) if c is None else ((h, c),)
        return torch.func.functional_call(layer, p, (x, *start))

    grad = list(inputs) + [p for p in params if state or "weight_hh" not in p]
    outputs = ("y1", "y2") if kind is nn.LSTMCell else ("y",)
    tensors = golden.record(run, inputs, params, grad, g, outputs=outputs, second=True)
    return f"{kind.__name__}_{next(m.count)}", kind.__name__, {"hidden": hidden, **option}, tensors

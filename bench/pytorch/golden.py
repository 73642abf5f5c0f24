"""Builds golden cases: runs a function of PyTorch on given tensors and keeps inputs, outputs and gradients."""

import torch


def exact(x):
    """x as float64 whose every element is a float32: what is stored is what was computed with."""
    return x.float().double()


def record(fn, inputs, params=None, grad=None, generator=None, outputs=("y",), second=False):
    """Runs fn(**inputs, **params) and returns the case's tensors by name.

    in.NAME and param.NAME are what went in, out.NAME what came out. With grad, a
    list of names of inputs and parameters, up.NAME is a random upstream gradient
    of each floating-point output and grad.NAME the gradients it causes. With
    second, turn.NAME is a random weight of each gradient and second.NAME the
    gradients of their weighted sum.
    """
    params = params or {}
    leaves = {n: t.clone() for n, t in {**inputs, **params}.items()}
    for name in grad or ():
        leaves[name].requires_grad_()
    results = fn(**leaves)
    results = results if isinstance(results, tuple) else (results,)
    case = {f"in.{n}": leaves[n] for n in inputs}
    case.update({f"param.{n}": leaves[n] for n in params})
    case.update({f"out.{n}": r for n, r in zip(outputs, results, strict=True)})
    if grad:
        upstream = {n: exact(torch.randn(r.shape, generator=generator))
                    for n, r in zip(outputs, results) if r.requires_grad}
        total = sum((r * upstream[n]).sum() for n, r in zip(outputs, results) if n in upstream)
        gradients = torch.autograd.grad(total, [leaves[n] for n in grad], create_graph=second)
        case.update({f"up.{n}": u for n, u in upstream.items()})
        case.update({f"grad.{n}": g for n, g in zip(grad, gradients)})
        if second:
            case.update(turned(grad, gradients, [leaves[n] for n in grad], generator))
    return {n: t.detach() for n, t in case.items()}


def turned(names, gradients, leaves, generator):
    """The weights of gradients, and the gradients of their weighted sum; 0 where none depends on a leaf."""
    weights = [exact(torch.randn(g.shape, generator=generator)) for g in gradients]
    total = sum((g * w).sum() for g, w in zip(gradients, weights))
    if total.requires_grad:
        seconds = torch.autograd.grad(total, leaves, allow_unused=True)
    else:
        seconds = [None] * len(leaves)
    seconds = [torch.zeros_like(leaf) if s is None else s for s, leaf in zip(seconds, leaves)]
    return {**{f"turn.{n}": w for n, w in zip(names, weights)}, **{f"second.{n}": s for n, s in zip(names, seconds)}}


def narrow(tensors):
    """Float64 tensors as float32, rounded once; the others as they are."""
    return {n: t.float() if t.dtype == torch.float64 else t for n, t in tensors.items()}

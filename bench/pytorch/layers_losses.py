"""The cases of losses, for layers_reference.py."""

import itertools
import math

import torch
import torch.nn.functional as F

import golden

SHAPES = ((7,), (3, 5), (1, 1), (2, 1, 4), (5, 3))
REDUCTIONS = ("mean", "sum", "none")


def focal(x, target, alpha, gamma, reduction):
    """torchvision's sigmoid_focal_loss."""
    p = torch.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, target, reduction="none") * (p + target - 2 * p * target) ** gamma
    if alpha >= 0:
        loss = loss * (alpha * target + (1 - alpha) * (1 - target))
    return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()


class Maker:
    """Draws operands and records cases of a generator."""

    def __init__(self, g):
        self.g, self.count = g, itertools.count()

    def randn(self, *shape, scale=1.0):
        return golden.exact(scale * torch.randn(shape, generator=self.g))

    def rand(self, *shape, low=0.0, high=1.0):
        return golden.exact(low + (high - low) * torch.rand(shape, generator=self.g))

    def signs(self, *shape):
        return golden.exact(torch.randint(0, 2, shape, generator=self.g) * 2 - 1)

    def case(self, kind, fn, grad, inputs, second=True, **attrs):
        """One case of fn(tensors, **attrs)."""
        tensors = golden.record(lambda **t: fn(t, **attrs), inputs, grad=list(grad), generator=self.g, second=second)
        return f"{kind}_{next(self.count)}", kind, {k: "inf" if v == math.inf else v for k, v in attrs.items()}, tensors

    def two(self, kind, call, make=None, grad=("x", "target"), shapes=SHAPES, second=True, **choices):
        """Cases over options, and over shapes."""
        make = make or (lambda s: {"x": self.randn(*s), "target": self.randn(*s)})
        for attrs, shape in zip(options(**choices), itertools.cycle(shapes)):
            yield self.case(kind, call, grad, make(shape), second, **attrs)
        for shape in shapes:
            yield self.case(kind, call, grad, make(shape), second, **{**{k: v[0] for k, v in choices.items()}, "reduction": "mean"})


def options(**choices):
    """All combinations of reductions with each choice apart, the rest at its first."""
    first = {k: v[0] for k, v in choices.items()}
    seen = set()
    for reduction in REDUCTIONS:
        for key, values in choices.items() or {"reduction": (reduction,)}.items():
            for v in values:
                attrs = {**first, key: v, "reduction": reduction}
                if str(attrs) not in seen:
                    seen.add(str(attrs))
                    yield attrs


def cases(g):
    """Yields (name, layer, attrs, tensors)."""
    m = Maker(g)
    randn, rand, signs, case, two = m.randn, m.rand, m.signs, m.case, m.two

    yield from two("l1_loss", lambda t, **a: F.l1_loss(t["x"], t["target"], **a))
    yield from two("smooth_l1_loss", lambda t, **a: F.smooth_l1_loss(t["x"], t["target"], **a), beta=(1.0, 0.3, 2.5, 0.0))
    yield from two("huber_loss", lambda t, **a: F.huber_loss(t["x"], t["target"], **a), delta=(1.0, 0.3, 2.5))

    def kl(t, log_target, reduction):
        return F.kl_div(t["x"], t["target"], reduction=reduction, log_target=log_target)

    def distributions(s):
        p = torch.rand(s, generator=g)
        p[..., 0] = 0
        return {"x": randn(*s), "target": golden.exact(p)}

    yield from two("kl_div", kl, distributions, grad=("x",), log_target=(False,))
    yield from two("kl_div", kl, lambda s: {"x": randn(*s), "target": rand(*s, low=0.1)}, log_target=(False, True))
    for log_target in (False, True):
        yield case("kl_div", kl, ("x", "target"), {"x": randn(3, 4), "target": rand(3, 4, low=0.1)}, log_target=log_target, reduction="batchmean")

    def bce(t, reduction):
        return F.binary_cross_entropy(t["x"], t["target"], t.get("weight"), reduction=reduction)

    def logits(t, reduction):
        return F.binary_cross_entropy_with_logits(t["x"], t["target"], t.get("weight"), pos_weight=t.get("pos_weight"), reduction=reduction)

    yield from two("binary_cross_entropy", bce, lambda s: {"x": rand(*s, low=0.05, high=0.95), "target": rand(*s)}, grad=("x",))
    yield from two("binary_cross_entropy", bce, lambda s: {"x": rand(*s, low=0.05, high=0.95), "target": rand(*s).round(), "weight": rand(*s[-1:])}, grad=("x",))
    yield from two("bce_with_logits", logits, lambda s: {"x": randn(*s, scale=3), "target": rand(*s), "weight": rand(*s[-1:])})
    yield from two("bce_with_logits", logits, lambda s: {"x": randn(*s, scale=3), "target": rand(*s).round(), "pos_weight": rand(*s[-1:], high=4)})
    yield from two("bce_with_logits", logits, lambda s: {"x": randn(*s, scale=3), "target": rand(*s), "weight": rand(*s), "pos_weight": rand(*s[-1:], high=4)})
    yield from two("sigmoid_focal_loss", lambda t, **a: focal(t["x"], t["target"], **a),
                   lambda s: {"x": randn(*s, scale=2), "target": rand(*s).round()}, grad=("x",), alpha=(0.25, -1.0, 0.8), gamma=(2.0, 1.0, 1.5, 0.0))


def classes(g):
    """Yields (name, layer, attrs, tensors)."""
    m = Maker(g)
    randn, rand, signs, case, two = m.randn, m.rand, m.signs, m.case, m.two

    yield from two("hinge_embedding_loss", lambda t, **a: F.hinge_embedding_loss(t["x"], t["target"], **a),
                   lambda s: {"x": randn(*s).abs(), "target": signs(*s)}, grad=("x",), margin=(1.0, 0.4, 2.0))
    yield from two("margin_ranking_loss", lambda t, **a: F.margin_ranking_loss(t["x"], t["x2"], t["target"], **a),
                   lambda s: {"x": randn(*s), "x2": randn(*s), "target": signs(*s)}, grad=("x", "x2"), margin=(0.0, 0.5))
    yield from two("soft_margin_loss", lambda t, **a: F.soft_margin_loss(t["x"], t["target"], **a),
                   lambda s: {"x": randn(*s, scale=4), "target": signs(*s)}, grad=("x",))
    rows = ((4, 3), (1, 5), (6, 2), (3, 7), (5, 2))

    def numbered(s, **more):
        return {"x": randn(*s), "target": torch.randint(0, s[1], s[:1], generator=g), **more}

    yield from two("multi_margin_loss", lambda t, **a: F.multi_margin_loss(t["x"], t["target"], weight=t.get("weight"), **a),
                   numbered, grad=("x",), shapes=rows, second=False, p=(1, 2), margin=(1.0, 0.3))
    yield from two("multi_margin_loss", lambda t, **a: F.multi_margin_loss(t["x"], t["target"], weight=t.get("weight"), **a),
                   lambda s: numbered(s, weight=rand(s[1])), grad=("x",), shapes=rows, second=False, p=(1, 2))
    yield from two("cosine_embedding_loss", lambda t, **a: F.cosine_embedding_loss(t["x"], t["x2"], t["target"], **a),
                   lambda s: {"x": randn(*s), "x2": randn(*s), "target": signs(*s[:1])}, grad=("x", "x2"), shapes=rows, margin=(0.0, 0.3, -0.4))
    yield from two("triplet_margin_loss", lambda t, **a: F.triplet_margin_loss(t["x"], t["x2"], t["x3"], **a),
                   lambda s: {"x": randn(*s), "x2": randn(*s), "x3": randn(*s)}, grad=("x", "x2", "x3"), shapes=((4, 3), (1, 5), (7,), (3, 7), (2, 3, 4)),
                   margin=(1.0, 0.4), p=(2.0, 1.0, 3.0, math.inf), swap=(False, True), eps=(1e-6, 0.1))
    yield from two("gaussian_nll_loss", lambda t, **a: F.gaussian_nll_loss(t["x"], t["target"], t["variance"], **a),
                   lambda s: {"x": randn(*s), "target": randn(*s), "variance": rand(*s, low=0.1, high=2)}, grad=("x", "target", "variance"),
                   full=(False, True), eps=(1e-6, 0.7))
    yield from two("gaussian_nll_loss", lambda t, **a: F.gaussian_nll_loss(t["x"], t["target"], t["variance"], **a),
                   lambda s: {"x": randn(*s), "target": randn(*s), "variance": rand(*s[:-1], 1, low=0.1, high=2)}, grad=("x", "target", "variance"), full=(False,))
    yield from two("poisson_nll_loss", lambda t, **a: F.poisson_nll_loss(t["x"], t["target"], **a),
                   lambda s: {"x": rand(*s, low=0.2, high=2), "target": rand(*s, high=4)}, grad=("x",), log_input=(True, False), full=(False, True), eps=(1e-8, 0.1))

    def flat(f):
        """PyTorch's classes are dimension 1, ours the last."""
        def run(t, **a):
            x = t["x"].movedim(-1, 1).contiguous() if t["x"].dim() > 2 else t["x"]
            target = t["target"]
            if target.is_floating_point() and target.dim() > 2:
                target = target.movedim(-1, 1).contiguous()
            return f(x, target, weight=t.get("weight"), **a)
        return run

    dense = ((4, 3), (6, 2), (2, 3, 5), (3, 1), (2, 2, 3, 4))

    def labels(s, weighted, ignore=None):
        y = torch.randint(0, s[-1], s[:-1], generator=g)
        if ignore is not None:
            y.view(-1)[0] = ignore
        return {"x": randn(*s, scale=2), "target": y, **({"weight": rand(s[-1], low=0.1, high=2)} if weighted else {})}

    for weighted, ignore in ((True, None), (True, -100), (False, -100), (True, 1)):
        extra = {} if ignore in (None, -100) else {"ignore_index": (ignore,)}
        some = dense if ignore != 1 else tuple(s for s in dense if s[-1] > 1)
        yield from two("nll_loss", flat(F.nll_loss), lambda s: labels(s, weighted, ignore), grad=("x",), shapes=some, **extra)
        yield from two("cross_entropy", flat(F.cross_entropy), lambda s: labels(s, weighted, ignore), grad=("x",), shapes=some,
                       label_smoothing=(0.0, 0.15), **extra)

    def soft(s, weighted):
        return {"x": randn(*s, scale=2), "target": golden.exact(torch.softmax(randn(*s), -1)), **({"weight": rand(s[-1], low=0.1, high=2)} if weighted else {})}

    for weighted in (False, True):
        yield from two("cross_entropy", flat(F.cross_entropy), lambda s: soft(s, weighted), grad=("x", "target"), shapes=dense, label_smoothing=(0.0, 0.15))
    for shape in ((4, 3), (2, 3, 5), (2, 2), (6, 2), (3, 4, 2)):
        for axis, eps in ((-1, 1e-8), (1, 0.5), (0, 1e-8)):
            yield case("cosine_similarity", lambda t, dim, eps: F.cosine_similarity(t["x"], t["x2"], dim, eps), ("x", "x2"),
                       {"x": randn(*shape), "x2": randn(*shape)}, dim=axis, eps=eps)

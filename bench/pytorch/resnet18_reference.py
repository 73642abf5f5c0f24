"""ResNets of torchvision: the reference of `warpline train resnet18 --init`, and thin goldens for tests.

    python resnet18_reference.py make [--work DIR] [--classes 10] [--size 64]
    python resnet18_reference.py compare RUN [--work DIR] [--eval FILE]
    python resnet18_reference.py thin [--dir model/testdata/resnet]
    python resnet18_reference.py thin50 [--dir model/testdata/resnet50]

make writes into --work (about 140 MB, never committed) init.safetensors, data.npz
(images N×C×H×W float32, labels int64), final.safetensors and golden.json, and
prints the commands whose results must match. compare reads the run folder and,
with --eval, the JSON lines that `warpline eval RUN --data … --json` printed.

thin writes the same for a ResNet of torchvision's own class with 8 planes
instead of 64 and [2, 2, 1, 1] blocks, every name as torchvision gives it:
    golden.json             sizes, hyper-parameters, losses, evaluation, noise floor
    init.safetensors        state dict before training
    data.safetensors        images, labels; logits.train and logits.eval at the start
    gradients.safetensors   every parameter's first gradient
    final.safetensors       state dict after the last step

thin50 does so for bottleneck blocks, with 2 planes and [1, 2, 1, 1] blocks. Its
pictures and labels are those of thin; data.safetensors has the logits alone.

All are float32 runs, as a user of PyTorch has them. "floor" says how far
PyTorch ends from itself: from the same run in float64, and for the updates, which
are so small that the rounding of the weights shows, from the same run in float32
with its other convolution kernels.
"""

import argparse
import copy
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import load_file
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

import common

SEED = 18
STEPS = 6


class ThinResNet(ResNet):
    """torchvision's ResNet with every width divided by 64 // planes.

    ResNet fixes its widths at 64…512 and sets inplanes itself, so the stem and
    the classifier are replaced and _make_layer scales what it is asked for.
    """

    def __init__(self, block, layers, planes, num_classes):
        self.planes = planes
        super().__init__(block, layers, num_classes=num_classes)
        self.conv1 = torch.nn.Conv2d(3, planes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(planes)
        self.fc = torch.nn.Linear(8 * planes * block.expansion, num_classes)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        if planes == 64:
            self.inplanes = self.planes
        return super()._make_layer(block, planes * self.planes // 64, blocks, stride, dilate)


def settle(model, images, generator):
    """Moves norms away from 1 and 0 and gives them running statistics near, but not at, the data's."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    with torch.no_grad():
        for m in norms:
            # Below 1, where float32 is twice as fine: updates at lr 1e-5 are a few of its steps.
            m.weight.copy_(0.5 + 0.5 * torch.rand(m.weight.shape, generator=generator))
            m.bias.copy_(0.2 * torch.randn(m.bias.shape, generator=generator))
        model.train()
        for _ in range(20):
            model(torch.randn(images.shape, generator=generator))
        for m in norms:
            m.running_mean.add_(0.05 * torch.randn(m.running_mean.shape, generator=generator))
            m.running_var.mul_(0.9 + 0.2 * torch.rand(m.running_var.shape, generator=generator))
            m.num_batches_tracked.fill_(20)


def make_data(n, size, classes, generator):
    """Noise with a class's own colour and brightness ramp."""
    labels = torch.randint(classes, (n,), generator=generator)
    tint = torch.randn(classes, 3, 1, 1, generator=generator)
    ramp = torch.linspace(-1, 1, size) * torch.randn(classes, 1, 1, 1, generator=generator)
    images = torch.randn(n, 3, size, size, generator=generator) + 0.5 * tint[labels] + 0.5 * ramp[labels]
    return images, labels


def train(model, images, labels, batch, lr, momentum):
    """Sequential batches, indices modulo N. Returns losses and the first gradients."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, foreach=False)
    losses, first = [], {}
    for s in range(STEPS):
        at = torch.arange(s * batch, (s + 1) * batch) % len(labels)
        loss = F.cross_entropy(model(images[at]), labels[at])
        optimizer.zero_grad()
        loss.backward()
        if not first:
            first = {n: p.grad.clone() for n, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, first


@torch.no_grad()
def evaluate(model, images, labels):
    """Mean loss over all samples and accuracy, in evaluation mode."""
    model.eval()
    logits = model(images)
    accuracy = (logits.argmax(1) == labels).double().mean().item()
    return {"loss": F.cross_entropy(logits, labels).item(), "accuracy": accuracy}


def is_statistic(name):
    return name.endswith(("running_mean", "running_var"))


def differences(got, want, init):
    """Per tensor: relative norm of the update's difference; of the value's for running statistics."""
    statistics, updates = {}, {}
    for name, w in want.items():
        if name.endswith("num_batches_tracked"):
            continue
        if is_statistic(name):
            statistics[name] = common.relative_norm(got[name], w)
        else:
            updates[name] = common.relative_norm(got[name].double() - init[name], w.double() - init[name])
    return statistics, updates


def reference(model, images, labels, batch, lr, momentum):
    """Trains and evaluates in float32, again in float64, and returns the run and its golden record."""
    init = {k: v.clone() for k, v in model.state_dict().items()}
    exact, other = copy.deepcopy(model).double(), copy.deepcopy(model)
    losses, first = train(model, images, labels, batch, lr, momentum)
    score = evaluate(model, images, labels)
    losses64, first64 = train(exact, images.double(), labels, batch, lr, momentum)
    score64 = evaluate(exact, images.double(), labels)
    final = {k: v.clone() for k, v in model.state_dict().items()}
    with torch.backends.mkldnn.flags(enabled=False):
        train(other, images, labels, batch, lr, momentum)
    statistics, _ = differences(exact.state_dict(), final, init)
    _, updates = differences(other.state_dict(), final, init)
    gradients = {n: common.relative_norm(first[n], first64[n]) for n in first}
    golden = {
        "versions": common.versions(torchvision),
        "batch": batch, "steps": STEPS, "lr": lr, "momentum": momentum, "samples": len(labels),
        "losses": losses, "losses_float64": losses64, "eval": score, "eval_float64": score64,
        "update_norm": {n: (final[n] - init[n]).double().norm().item() for n in updates},
        "floor": {
            "loss": max(abs(a - b) / abs(b) for a, b in zip(losses, losses64)),
            "eval_loss": abs(score["loss"] - score64["loss"]) / score64["loss"],
            "statistic": max(statistics.values()), "update": updates, "first_gradient": gradients,
        },
    }
    return init, first, final, golden


def report(golden):
    f = golden["floor"]
    print(f"losses {golden['losses']}\neval {golden['eval']}")
    print(f"float32 against float64: loss {f['loss']:.1e}, eval loss {f['eval_loss']:.1e}, "
          f"running statistics {f['statistic']:.1e}, first gradient {max(f['first_gradient'].values()):.1e}; "
          f"against other kernels: update {max(f['update'].values()):.1e}")


def make(work, classes, size):
    common.deterministic(SEED)
    generator = torch.Generator().manual_seed(SEED)
    model = torchvision.models.resnet18(weights=None, num_classes=classes)
    batch, lr, momentum = 8, 1e-5, 0.9
    # 44 samples: the last of six batches of 8 goes round to the start.
    images, labels = make_data(44, size, classes, generator)
    settle(model, images[:16], generator)

    work.mkdir(parents=True, exist_ok=True)
    common.save_tensors(work / "init.safetensors", model.state_dict())
    np.savez(work / "data.npz", images=images.numpy(), labels=labels.numpy())
    _, _, final, golden = reference(model, images, labels, batch, lr, momentum)
    common.save_tensors(work / "final.safetensors", final)
    common.save_json(work / "golden.json", golden)
    report(golden)
    print(f"warpline train resnet18 --init {work}/init.safetensors --data {work}/data.npz --optimizer sgd "
          f"--momentum {momentum:g} --lr {lr:g} --order sequential --batch {batch} --steps {STEPS} --out RUN")
    print(f"warpline eval RUN --data {work}/data.npz --json > eval.json")


def compare(work, run, eval_file):
    golden = json.loads((work / "golden.json").read_text())
    want, init = load_file(work / "final.safetensors"), load_file(work / "init.safetensors")
    got = load_file(run / "model.safetensors")
    absent = [n for n in want if not n.endswith("num_batches_tracked") and n not in got]
    if absent:
        print(f"missing in {run}/model.safetensors: {', '.join(absent)}")
        return 1
    losses, _ = common.read_log(run)
    loss_error = common.print_losses(losses, golden["losses"])
    statistics, updates = differences(got, want, init)
    for name, error in updates.items():
        print(f"{name:32s} update norm {golden['update_norm'][name]:.3e}  difference {error:.2e}  "
              f"floor {golden['floor']['update'][name]:.2e}")
    checks = [
        ("largest relative loss error", loss_error, 1e-4),
        ("running statistics, relative norm", max(statistics.values()), 2e-4),
        ("updates, relative norm", max(updates.values()), 5e-2),
    ]
    if eval_file:
        final = json.loads(eval_file.read_text().strip().splitlines()[-1])
        checks.append(("evaluation loss", abs(final["loss"] / golden["eval"]["loss"] - 1), 1e-4))
        checks.append(("evaluation accuracy", abs(final["accuracy"] - golden["eval"]["accuracy"]), 1e-6))
    return common.verdict(checks)


def thin(directory):
    generator = torch.Generator().manual_seed(SEED)
    # 18 samples: batches of 8 go round to the start. 40 pixels leave 2×2 at the last norm:
    # with 1×1 it divides by the spread of 8 numbers, and float32 alone costs 1e-5.
    images, labels = make_data(18, 40, 10, generator)
    thin_run(directory, BasicBlock, [2, 2, 1, 1], 8, images, labels, generator, {"images": images, "labels": labels})


def thin50(directory):
    data = load_file(common.ROOT / "model/testdata/resnet/data.safetensors")
    generator = torch.Generator().manual_seed(SEED)
    thin_run(directory, Bottleneck, [1, 2, 1, 1], 2, data["images"], data["labels"], generator, {})


def thin_run(directory, block, layers, planes, images, labels, generator, data):
    common.deterministic(SEED)
    classes = 10
    model = ThinResNet(block, layers, planes, classes)
    settle(model, images, generator)
    with torch.no_grad():
        before = model.eval()(images[:8])
        training = copy.deepcopy(model).train()(images[:8])
    init, first, final, golden = reference(model, images, labels, batch=8, lr=1e-3, momentum=0.9)
    golden = {"layers": layers, "planes": planes, "classes": classes, **golden}
    common.save_tensors(directory / "init.safetensors", init)
    common.save_tensors(directory / "data.safetensors", {
        **data, "logits.eval": before, "logits.train": training})
    common.save_tensors(directory / "gradients.safetensors", first)
    common.save_tensors(directory / "final.safetensors", final)
    common.save_json(directory / "golden.json", golden)
    report(golden)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="mode", required=True)
    work = pathlib.Path(tempfile.gettempdir()) / "warpline-resnet18"
    p = sub.add_parser("make")
    p.add_argument("--work", type=pathlib.Path, default=work)
    p.add_argument("--classes", type=int, default=10)
    p.add_argument("--size", type=int, default=64)
    p = sub.add_parser("compare")
    p.add_argument("run", type=pathlib.Path)
    p.add_argument("--work", type=pathlib.Path, default=work)
    p.add_argument("--eval", type=pathlib.Path)
    p = sub.add_parser("thin")
    p.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "model/testdata/resnet")
    p = sub.add_parser("thin50")
    p.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "model/testdata/resnet50")
    args = parser.parse_args()
    if args.mode == "make":
        make(args.work, args.classes, args.size)
    elif args.mode == "compare":
        sys.exit(compare(args.work, args.run, args.eval))
    elif args.mode == "thin":
        thin(args.dir)
    else:
        thin50(args.dir)


if __name__ == "__main__":
    main()

"""A tiny GPT-2 of transformers, trained 20 steps: the reference of `warpline train gpt --init`.

    python gpt2_reference.py make [--dir model/testdata/gpt2]
    python gpt2_reference.py compare RUN [--dir model/testdata/gpt2]

make writes
    init/config.json, init/model.safetensors   as save_pretrained writes them
    tokens.bin                                 little-endian uint16
    golden.json                                hyper-parameters, losses, gradient norms, noise floor
    logits.safetensors                         row 0 of step 0 before training: tokens, logits
    gradients.safetensors                      every parameter's first gradient, before clipping
    final.safetensors                          weights after the last step

Unlike the other goldens these are a true float32 run, as a user of PyTorch has
it. golden.json also holds the losses of the same run in float64 and how far the
two are apart ("floor"): what no float32 implementation can be expected to beat.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

import common

SEED = 20
SIZES = dict(n_layer=2, n_head=4, n_embd=48, n_positions=32, vocab_size=113)
# eps is not 1e-8: softmax ignores what is added to every score of a row, so the
# key third of c_attn.bias has no gradient but rounding noise near 1e-9, and Adam
# with so small an eps makes full steps of that noise. PyTorch's float32 then
# differs from its float64 by 3e-3 there, above the bar; with 1e-6 the run is well posed.
HYPER = dict(lr=1e-3, beta1=0.9, beta2=0.95, eps=1e-6, weight_decay=0.1, clip=1.0)
BATCH, STEPS = 8, 20


def build():
    config = GPT2Config(
        **SIZES, activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0, attn_implementation="eager",
    )
    model = GPT2LMHeadModel(config)
    generator = torch.Generator().manual_seed(SEED)
    # Wider than GPT-2's 0.02, and biases and norms away from 0 and 1: a swapped,
    # transposed or forgotten tensor then shows in the first loss.
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if "ln_" in name and name.endswith("weight"):
                p.copy_(1 + 0.1 * noise)
            elif p.dim() == 1:
                p.copy_(0.05 * noise)
            else:
                p.copy_(0.12 * noise)
    return model


def make_tokens(n):
    """A noisy Markov chain: four times in five the successor is a fixed permutation's."""
    rng = np.random.default_rng(SEED)
    vocab = SIZES["vocab_size"]
    successor = rng.permutation(vocab)
    tokens = np.empty(n, dtype="<u2")
    tokens[0] = 1
    for i in range(1, n):
        tokens[i] = successor[tokens[i - 1]] if rng.random() < 0.8 else rng.integers(vocab // 4)
    return tokens


def batches(tokens):
    """Step s: tokens [s·B·T, (s+1)·B·T], targets shifted by one, rows in order."""
    t = SIZES["n_positions"]
    size = BATCH * t
    tokens = torch.from_numpy(tokens.astype(np.int64))
    for s in range(STEPS):
        at = s * size
        yield tokens[at:at + size].view(BATCH, t), tokens[at + 1:at + size + 1].view(BATCH, t)


def train(model, tokens):
    """Returns losses, gradient norms before clipping, and the first gradients."""
    model.train()
    params = list(model.parameters())
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": HYPER["weight_decay"]},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        groups, lr=HYPER["lr"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["eps"], foreach=False)
    losses, norms, first = [], [], {}
    for x, y in batches(tokens):
        logits = model(x).logits
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if not first:
            first = {n: p.grad.clone() for n, p in model.named_parameters()}
        norms.append(torch.nn.utils.clip_grad_norm_(params, HYPER["clip"], foreach=False).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms, first


def floor(model, first, losses, tokens, init):
    """How far a float64 run of the same program ends from the float32 one."""
    exact = build().double()
    exact.load_state_dict({k: v.double() for k, v in init.items()})
    losses64, _, first64 = train(exact, tokens)
    final, final64 = dict(model.named_parameters()), dict(exact.named_parameters())
    return losses64, {
        "loss": max(abs(a - b) / abs(b) for a, b in zip(losses, losses64)),
        "first_gradient": {n: common.relative_norm(first[n], first64[n]) for n in first},
        "final_weight": {n: common.relative_norm(final[n], final64[n]) for n in final},
    }


def command(directory):
    flags = " ".join(f"--{k.replace('_', '-')} {v:g}" for k, v in HYPER.items())
    return (f"warpline train gpt --init {directory}/init --tokens {directory}/tokens.bin --optimizer adamw {flags} "
            f"--order sequential --batch {BATCH} --context {SIZES['n_positions']} --steps {STEPS} --out RUN")


def shown(directory):
    """The folder as the printed command should name it."""
    directory = directory.resolve()
    return directory.relative_to(common.ROOT) if directory.is_relative_to(common.ROOT) else directory


def make(directory):
    common.deterministic(SEED)
    model = build()
    model.save_pretrained(directory / "init")
    (directory / "init" / "generation_config.json").unlink(missing_ok=True)
    init = {k: v.clone() for k, v in model.state_dict().items()}

    # One token more than the steps need is the least; a few over show that a tail is ignored.
    tokens = make_tokens(STEPS * BATCH * SIZES["n_positions"] + 60)
    (directory / "tokens.bin").write_bytes(tokens.tobytes())

    x, _ = next(batches(tokens))
    with torch.no_grad():
        common.save_tensors(directory / "logits.safetensors", {"tokens": x[:1], "logits": model(x[:1]).logits})

    losses, norms, first = train(model, tokens)
    common.save_tensors(directory / "gradients.safetensors", first)
    common.save_tensors(directory / "final.safetensors", dict(model.named_parameters()))

    losses64, noise = floor(model, first, losses, tokens, init)
    common.save_json(directory / "golden.json", {
        "command": command(shown(directory)),
        "versions": common.versions(transformers),
        "config": SIZES, "hyper": HYPER, "batch": BATCH, "steps": STEPS,
        "losses": losses, "gradient_norms": norms, "losses_float64": losses64, "floor": noise,
    })
    print(command(shown(directory)))
    print(f"loss {losses[0]:.6f} → {losses[-1]:.6f}; mean of first five {np.mean(losses[:5]):.6f}, "
          f"of last five {np.mean(losses[-5:]):.6f}")
    print(f"float32 against float64: loss {noise['loss']:.1e}")
    for key in ("first_gradient", "final_weight"):
        name = max(noise[key], key=noise[key].get)
        print(f"  {key}: worst {noise[key][name]:.1e} ({name})")


def run_weights(path):
    """Weights of a run under Hugging Face's names, whether or not they carry the prefix."""
    weights = load_file(path)
    return {k if k.startswith(("transformer.", "lm_head.")) else "transformer." + k: v for k, v in weights.items()}


def compare(directory, run):
    golden = json.loads((directory / "golden.json").read_text())
    losses, _ = common.read_log(run)
    loss_error = common.print_losses(losses, golden["losses"])

    got, want = run_weights(run / "model.safetensors"), load_file(directory / "final.safetensors")
    init = load_file(directory / "init" / "model.safetensors")
    weight_error = 0.0
    for name, w in want.items():
        if name not in got or got[name].shape != w.shape:
            print(f"{name}: {'missing' if name not in got else tuple(got[name].shape)}, want {tuple(w.shape)}")
            weight_error = float("inf")
            continue
        error = common.relative_norm(got[name], w)
        update = common.relative_norm(got[name] - init[name], w - init[name])
        weight_error = max(weight_error, error)
        print(f"{name:40s} weight {error:.2e}  update {update:.2e}  floor {golden['floor']['final_weight'][name]:.2e}")
    falls = np.mean(losses[-5:]) < np.mean(losses[:5])
    print(f"mean of first five {np.mean(losses[:5]):.6f}, of last five {np.mean(losses[-5:]):.6f}")
    return common.verdict([
        ("largest relative loss error", loss_error, 1e-5),
        ("largest relative norm of a weight's difference", weight_error, 1e-3),
        ("loss does not fall (0 or 1)", 0.0 if falls else 1.0, 0.5),
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="mode", required=True)
    for mode in ("make", "compare"):
        p = sub.add_parser(mode)
        if mode == "compare":
            p.add_argument("run", type=pathlib.Path)
        p.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "model/testdata/gpt2")
    args = parser.parse_args()
    if args.mode == "make":
        make(args.dir)
    else:
        sys.exit(compare(args.dir, args.run))


if __name__ == "__main__":
    main()

"""Golden vectors of layers and losses by families, over all their options, with first and second derivatives.

    python layers_reference.py [--dir nn/testdata] [FAMILY ...]

Writes FAMILY.safetensors and FAMILY.json, a list of {name, layer, attrs}. Tensors
are named as nn_reference.py has them, behind CASE and a colon; turn.* are the
weights of gradients, second.* the gradients of their weighted sum. Computed in
float64, stored in float32; labels int64, masks bool.
"""

import argparse
import pathlib

import torch

import common
import golden
import layers_activation
import layers_attention
import layers_core
import layers_losses
import layers_options
import layers_recurrent
import layers_spatial


def adapt(g):
    """The only family that needs peft and transformers."""
    import layers_adapt

    return layers_adapt.adapt(g)


FAMILIES = {"losses": layers_losses.cases, "losses_margin": layers_losses.classes,
            "activations": layers_activation.activations, "norms": layers_activation.norms,
            "lstm": layers_recurrent.lstm, "gru": layers_recurrent.gru, "rnn": layers_recurrent.rnn, "cells": layers_recurrent.cells,
            "attention_functional": layers_attention.functional, "attention_layers": layers_attention.multihead, "transformer": layers_attention.transformer,
            "convolutions": layers_spatial.convolutions, "interpolate": layers_spatial.interpolate, "windows": layers_spatial.windows, "core": layers_core.core, "nothing": layers_core.nothing,
            "options_recurrent": layers_options.recurrents, "options_attention": layers_options.attentions, "options_convolution": layers_options.convolutions, "options_losses": layers_options.losses, "adapt": adapt}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=common.ROOT / "nn/testdata")
    parser.add_argument("family", nargs="*")
    args = parser.parse_args()
    for name in args.family or FAMILIES:
        common.deterministic(7)
        index, tensors = [], {}
        for case, kind, attrs, values in FAMILIES[name](torch.Generator().manual_seed(7)):
            index.append({"name": case, "layer": kind, "attrs": attrs})
            tensors.update({f"{case}:{n}": t for n, t in golden.narrow(values).items()})
        common.save_tensors(args.dir / f"{name}.safetensors", tensors)
        common.save_json(args.dir / f"{name}.json", {"versions": common.versions(), "cases": index})
        print(f"{name}: {len(index)} cases")


if __name__ == "__main__":
    main()

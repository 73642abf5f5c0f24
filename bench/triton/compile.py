# Compiles the kernels for sm_80, or sm_90 where their names end in that, without a GPU, and writes for each NAME.ptx, as Triton gives it, and NAME.json:
#
#   python -m venv env && env/bin/pip install triton==3.9.0
#   env/bin/python bench/triton/compile.py internal/simrun/testdata/triton
#
# The last run's versions are in versions.txt there. Those that published figures are of, for bench/clock:
#
#   env/bin/python bench/triton/compile.py bench/clock/testdata/triton published
import json
import os
import sys
import tempfile

import triton
import triton.language.extra.cuda.gdc
import triton.language.random
import triton.language.standard
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

import kernels
import tutorials

# name: kernel, types of the parameters, constants, parameters that are divisible by 16 (the launcher would see that), options
KERNELS = {
    "add": (kernels.add, {"X": "*fp32", "Y": "*fp32", "Z": "*fp32", "n": "i32"}, {"BLOCK": 256}, "XYZ", {}),
    "softmax": (kernels.softmax, {"X": "*fp32", "Y": "*fp32", "cols": "i32"}, {"BLOCK": 1024}, "XY", {"num_warps": 8}),
    "layer_norm": (
        kernels.layer_norm,
        {"X": "*fp32", "Y": "*fp32", "W": "*fp32", "B": "*fp32", "cols": "i32", "eps": "fp32"},
        {"BLOCK": 256},
        "XYWB",
        {},
    ),
    "histogram": (kernels.histogram, {"X": "*i32", "H": "*i32", "n": "i32"}, {"BLOCK": 512, "BINS": 64}, "XH", {}),
    "cumsum": (kernels.cumsum, {"X": "*fp32", "Y": "*fp32", "cols": "i32"}, {"BLOCK": 512}, "XY", {}),
}
for name, typ in {"tf32": "*fp32", "bf16": "*bf16"}.items():
    types = {"A": typ, "B": typ, "C": typ, "M": "i32", "N": "i32", "K": "i32"}
    block = {"BM": 64, "BN": 32, "BK": 32}
    KERNELS["matmul_" + name] = (kernels.matmul, types, block, "ABCNK", {"num_stages": 3})  # copies of 16 bytes, in stages
    KERNELS["matmul_" + name + "_odd"] = (kernels.matmul, types, block, "ABC", {})
for name, typ in {"f16": "*fp16", "bf16": "*bf16"}.items():
    types = {"Q": typ, "K": typ, "V": typ, "O": typ, "T": "i32", "scale": "fp32"}
    KERNELS["attention_" + name] = (kernels.attention, types, {"D": 32, "BM": 64, "BN": 32}, "QKVO", {"num_stages": 2})

for name, typ in {"f16": "fp16", "bf16": "bf16", "tf32": "fp32", "e4m3": "fp8e4nv", "e5m2": "fp8e5"}.items():
    size = {"M": "i32", "N": "i32", "K": "i32"}
    block = {"BM": 64, "BN": 64, "BK": 32 if name == "tf32" else 64}
    out = "fp32" if typ.startswith("fp8") else typ
    types = {"A": "*" + typ, "B": "*" + typ, "C": "*" + out, **size}
    KERNELS[f"matmul_{name}_sm90"] = (kernels.matmul, types, block, "ABCNK", {"num_stages": 3})
    types = {"a": f"tensordesc<{typ}[64,{block['BK']}]>", "b": f"tensordesc<{typ}[64,{block['BK']}]>", "c": f"tensordesc<{out}[64,64]>", **size}
    KERNELS[f"boxes_{name}_sm90"] = (kernels.matmul_boxes, types, block, "K", {"num_stages": 3})
KERNELS["boxes_cluster_sm90"] = (*KERNELS["boxes_f16_sm90"][:4], {"num_stages": 3, "num_ctas": 2})
types = {"A": "*fp16", "B": "*fp16", "C": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
KERNELS["described_f16_sm90"] = (kernels.matmul_described, types, {"BM": 64, "BN": 64, "BK": 64}, "ABCMNK", {"num_stages": 3})
types = {"Q": "*fp16", "K": "*fp16", "V": "*fp16", "O": "*fp16", "T": "i32", "scale": "fp32"}
KERNELS["attention_f16_sm90"] = (kernels.attention, types, {"D": 64, "BM": 64, "BN": 64}, "QKVO", {"num_stages": 2})
for name, warps, specialised in [("boxes", 4, False), ("specialised", 4, True)]:
    box = f"tensordesc<fp16[{16 * warps},64]>"
    types = {"Q": box, "K": "tensordesc<fp16[64,64]>", "V": "tensordesc<fp16[64,64]>", "O": box, "T": "i32", "scale": "fp32"}
    constants = {"D": 64, "BM": 16 * warps, "BN": 64, "SPECIALISED": specialised}
    KERNELS[f"attention_{name}_sm90"] = (kernels.attention_boxes, types, constants, "", {"num_stages": 2, "num_warps": warps})

floats = lambda *names: {name: "*fp32" for name in names}
pointers = lambda types: [name for name, typ in types.items() if typ.startswith("*")]
for name, types, constants in [
    ("softmax_rows", {**floats("X", "Y"), "rows": "i32", "cols": "i32"}, {"BLOCK": 256, "STAGES": 4}),
    ("dropout", {"X": "*fp32", "Keep": "*i32", "Y": "*fp32", "n": "i32", "p": "fp32"}, {"BLOCK": 256}),
    ("dropout_seeded", {**floats("X", "Y"), "n": "i32", "p": "fp32", "seed": "i32"}, {"BLOCK": 256}),
    (
        "layer_norm_backward",
        {**floats("DX", "DY", "DW", "DB", "X", "W", "Mean", "Scale"), "Lock": "*i32", "cols": "i32"},
        {"GROUP": 2, "BLOCK": 256},
    ),
    ("layer_norm_sums", {**floats("DW", "DB", "W", "B"), "rows": "i32", "cols": "i32"}, {"BM": 32, "BN": 64}),
    ("matmul_groups", {"As": "*i64", "Bs": "*i64", "Cs": "*i64", "Sizes": "*i32", "count": "i32"}, {"BM": 64, "BN": 32, "BK": 32}),
]:
    KERNELS[name] = (getattr(tutorials, name), types, constants, pointers(types) + ["cols"] * (name == "softmax_rows"), {})
for name in ("layer_norm_sums", "matmul_groups"):
    KERNELS[name + "_sm90"] = KERNELS[name]
KERNELS["matmul_groups_boxes_sm90"] = (tutorials.matmul_groups_boxes, *KERNELS["matmul_groups"][1:])
KERNELS["add_dependent_sm90"] = (tutorials.add_dependent, *KERNELS["add"][1:4], {"launch_pdl": True})
types = {"A": "*fp16", "B": "*fp16", "C": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
for name in ("persistent", "persistent_sm90"):
    KERNELS[name] = (tutorials.persistent, types, {"BM": 64, "BN": 32, "BK": 32}, "ABCNK", {"num_stages": 3})
halves = lambda *names: {name: "*fp16" for name in names}
types = {**halves("O", "DO"), "Delta": "*fp32", "T": "i32"}
for name in ("attention_delta", "attention_delta_sm90"):
    KERNELS[name] = (tutorials.attention_delta, types, {"D": 32, "BM": 32}, pointers(types), {})
types = {**halves("Q", "K", "V", "DO", "DQ", "DK", "DV"), **floats("L", "Delta"), "T": "i32", "scale": "fp32"}
for name, rows in {"attention_backward": 32, "attention_backward_sm90": 64}.items():
    KERNELS[name] = (tutorials.attention_backward, types, {"D": 32, "BM": rows}, pointers(types), {"num_stages": 2})
types = {"A": "*fp16", "B": "*fp16", "C": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
for form in ("boxes", "halves", "specialised", "described", "described_specialised"):
    constants = {"BM": 64, "BN": 32, "BK": 32, "HALVES": form == "halves", "SPECIALISED": form.endswith("specialised")}
    shapes = {"a": (64, 32), "b": (32, 32), "c": (64, 16 if form == "halves" else 32)}
    boxes = {name: f"tensordesc<fp16[{h},{w}]>" for name, (h, w) in shapes.items()} | {"M": "i32", "N": "i32", "K": "i32"}
    KERNELS[f"persistent_{form}_sm90"] = (
        (tutorials.persistent_described, types, constants, "ABCMNK", {"num_stages": 3})
        if form.startswith("described")
        else (tutorials.persistent_boxes, boxes, constants, "K", {"num_stages": 3})
    )

# Kernels that are the same for sm_90, but for the lines that say so: the tests run them as those too.
SAME = ["add", "softmax", "softmax_rows", "layer_norm", "layer_norm_backward", "dropout", "dropout_seeded"]

# Configurations are those that Triton's tutorials 03 and 06 choose from, without those for float8; a program of these chooses the
# quickest for each shape. float32 has those that its autotuner mostly takes.
PUBLISHED = {"vector_add": (kernels.add, {"X": "*fp32", "Y": "*fp32", "Z": "*fp32", "n": "i32"}, {"BLOCK": 1024}, "XYZn", {})}
PUBLISHED["softmax"] = (kernels.softmax, {"X": "*fp32", "Y": "*fp32", "cols": "i32"}, {"BLOCK": 8192}, ["X", "Y", "cols"], {"num_warps": 8})
for bm, bn, bk, stages, warps in [
    (128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2), (32, 64, 32, 5, 2),
]:
    constants = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "PRECISION": "ieee"}
    for name, typ in {"f16": "*fp16", "f32": "*fp32"}.items():
        if name == "f16" or (bm, bn) in [(64, 32), (128, 64)]:
            types = {"A": typ, "B": typ, "C": typ, "M": "i32", "N": "i32", "K": "i32"}
            PUBLISHED[f"matmul_{name}_{bm}x{bn}"] = (kernels.matmul_grouped, types, constants, "ABCMNK", {"num_stages": stages, "num_warps": warps})
for bm, bn, warps in [(128, 32, 4), (128, 64, 4), (128, 64, 8), (128, 128, 8), (64, 64, 4)]:
    types = {"Q": "*fp16", "K": "*fp16", "V": "*fp16", "O": "*fp16", "T": "i32", "scale": "fp32"}
    for causal in (False, True):
        constants = {"D": 64, "BM": bm, "BN": bn, "CAUSAL": causal}
        PUBLISHED[f"attention_{'causal' if causal else 'full'}_{bm}x{bn}w{warps}"] = (
            kernels.attention_forward, types, constants, "QKVOT", {"num_stages": 3, "num_warps": warps})


def without_folders():
    """Makes debug lines name files without the folders of this machine."""
    for module in (kernels, tutorials, triton.language.standard, triton.language.random, triton.language.extra.cuda.gdc):
        for f in vars(module).values():
            if isinstance(f, JITFunction):
                f.file_name = os.path.basename(f.file_name)


def compiled(capability, fn, types, constants, divisible, options):
    names = list(types) + list(constants)
    return triton.compile(
        ASTSource(
            fn=fn,
            signature={k: types.get(k, "constexpr") for k in names},
            constexprs={(names.index(k),): v for k, v in constants.items()},
            attrs={(names.index(k),): [["tt.divisibility", 16]] for k in divisible},
        ),
        target=GPUTarget("cuda", capability, 32),
        options=options,
    )


def compile(name, *what):
    kernel = compiled(90 if name.endswith("_sm90") else 80, *what)
    ptx = kernel.asm["ptx"]
    # What is inlined from libdevice leaves labels named after its functions, and the strings that it asks for settings by.
    assert not any(s in ptx for s in ("__nv_", "_$_str", ".extern .func")), name + " has code from libdevice"
    if name in SAME:
        hopper = compiled(90, *what).asm["ptx"]
        assert hopper == ptx.replace(".version 8.8\n.target sm_80", ".version 9.4\n.target sm_90a"), name + " is another kernel for sm_90"
    with open(name + ".ptx", "w") as f:
        f.write(ptx)
    meta = kernel.metadata._asdict()
    del meta["extern_libs"]  # a path of this machine
    with open(name + ".json", "w") as f:
        json.dump(meta, f, default=vars, indent=1, sort_keys=True)
        f.write("\n")


os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()  # a cached kernel would have the folders
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
without_folders()
os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
for name, what in (PUBLISHED if sys.argv[2:] == ["published"] else KERNELS).items():
    compile(name, *what)
with open("versions.txt", "w") as f:
    f.write(f"triton {triton.__version__}\n")

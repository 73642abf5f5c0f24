# Writes softmax.ptx and softmax.json, without a GPU: pip install triton, then python softmax.py. The kernel has a mistake.
import json
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(X, Y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * cols + i, mask=i < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(Y + row * cols + i, e / tl.sum(e, 0))


source = ASTSource(fn=softmax, signature={"X": "*fp32", "Y": "*fp32", "cols": "i32", "BLOCK": "constexpr"}, constexprs={(3,): 1024})
kernel = triton.compile(source, target=GPUTarget("cuda", 80, 32))
with open("softmax.ptx", "w") as f:
    f.write(re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", kernel.asm["ptx"]))  # without the folders of this machine
with open("softmax.json", "w") as f:
    keys = ["name", "num_warps", "num_ctas", "shared", "global_scratch_size", "profile_scratch_size"]
    json.dump({k: getattr(kernel.metadata, k) for k in keys}, f, indent=1)
    f.write("\n")

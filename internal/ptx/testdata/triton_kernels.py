# Makes triton.ptx, without a GPU: python triton_kernels.py > triton.ptx (Triton 3.9; absolute paths are cut from .file).
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def histogram(X, Y, Z, BLOCK: tl.constexpr):
    x = tl.load(X + tl.arange(0, BLOCK))
    tl.atomic_add(Y + tl.arange(0, 64), tl.histogram(x, 64))
    tl.store(Z + tl.arange(0, BLOCK), tl.cumsum(x, 0))


source = ASTSource(fn=histogram, signature={"X": "*i32", "Y": "*i32", "Z": "*i32", "BLOCK": "constexpr"}, constexprs={(3,): 512})
ptx = triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"]
print(re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", ptx), end="")

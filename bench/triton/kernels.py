# Triton kernels as people write them, for the simulator's tests, without what Triton takes from libdevice: tl.sqrt, tl.exp2.
import triton
import triton.language as tl


@triton.jit
def add(X, Y, Z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(X + i, mask=mask)
    y = tl.load(Y + i, mask=mask)
    tl.store(Z + i, x + y, mask=mask)


@triton.jit
def softmax(X, Y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * cols + i, mask=i < cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(Y + row * cols + i, e / tl.sum(e, 0), mask=i < cols)


@triton.jit
def rsqrt(x):
    return tl.inline_asm_elementwise("rsqrt.approx.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def layer_norm(X, Y, W, B, cols, eps, BLOCK: tl.constexpr):
    X += tl.program_id(0) * cols
    Y += tl.program_id(0) * cols
    total = tl.zeros([BLOCK], tl.float32)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        total += tl.load(X + i, mask=i < cols, other=0.0)
    mean = tl.sum(total, 0) / cols
    total = tl.zeros([BLOCK], tl.float32)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.where(i < cols, tl.load(X + i, mask=i < cols, other=0.0) - mean, 0.0)
        total += d * d
    scale = rsqrt(tl.sum(total, 0) / cols + eps)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < cols
        x = tl.load(X + i, mask=mask, other=0.0)
        w = tl.load(W + i, mask=mask)
        b = tl.load(B + i, mask=mask)
        tl.store(Y + i, (x - mean) * scale * w + b, mask=mask)


@triton.jit
def matmul(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = A + m[:, None] * K + k[None, :]
    b = B + k[:, None] * N + n[None, :]
    acc = tl.zeros([BM, BN], tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a, mask=(m[:, None] < M) & (at + k[None, :] < K), other=0.0)
        y = tl.load(b, mask=(at + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="tf32")
        a += BK
        b += BK * N
    c = C + m[:, None] * N + n[None, :]
    tl.store(c, acc.to(C.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(Q, K, V, O, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.program_id(0) * BM
    head = tl.program_id(1) * T * D
    i = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + head + i[:, None] * D + d[None, :], mask=i[:, None] < T, other=0.0)
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for at in range(0, tl.minimum(first + BM, T), BN):
        j = at + tl.arange(0, BN)
        k = tl.load(K + head + j[None, :] * D + d[:, None], mask=j[None, :] < T, other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where((i[:, None] >= j[None, :]) & (j[None, :] < T), s, float("-inf"))
        higher = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - higher[:, None])
        shrink = tl.exp(most - higher)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(V + head + j[:, None] * D + d[None, :], mask=j[:, None] < T, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        most = higher
    o = O + head + i[:, None] * D + d[None, :]
    tl.store(o, (acc / total[:, None]).to(O.dtype.element_ty), mask=i[:, None] < T)


@triton.jit
def histogram(X, H, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < n, other=0)
    tl.atomic_add(H + tl.arange(0, BINS), tl.histogram(x, BINS, mask=i < n))


@triton.jit
def cumsum(X, Y, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < cols
    x = tl.load(X + i, mask=mask, other=0.0)
    tl.store(Y + i, tl.cumsum(x, 0), mask=mask)

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


# For Hopper: boxes of tensors, by descriptors that the launch makes or the kernel itself, and warps that have parts of their own.


@triton.jit
def matmul_boxes(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A[M,K] by B[N,K] transposed."""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros([BM, BN], tl.float32)
    for at in range(0, K, BK):
        acc = tl.dot(a.load([m, at]), b.load([n, at]).T, acc)
    c.store([m, n], acc.to(c.dtype))


@triton.jit
def matmul_described(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    c = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros([BM, BN], tl.float32)
    for at in range(0, K, BK):
        acc = tl.dot(a.load([m, at]), b.load([at, n]), acc)
    c.store([m, n], acc.to(C.dtype.element_ty))


@triton.jit
def attention_boxes(Q, K, V, O, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SPECIALISED: tl.constexpr):
    """Attention of T queries a head, a multiple of the blocks, to all keys; weights are powers of two."""
    first = tl.program_id(0) * BM
    head = tl.program_id(1) * T
    q = Q.load([head + first, 0])
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for at in tl.range(0, T, BN, warp_specialize=SPECIALISED):
        s = tl.dot(q, K.load([head + at, 0]).T) * scale
        higher = tl.maximum(most, tl.max(s, 1))
        p = exp2(s - higher[:, None])
        shrink = exp2(most - higher)
        total = total * shrink + tl.sum(p, 1)
        v = V.load([head + at, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        most = higher
    O.store([head + first, 0], (acc / total[:, None]).to(O.dtype))


# What follows is what published figures are of: bench/clock compares the model of time with them.


@triton.jit
def matmul_grouped(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr):
    """Blocks walk the tiles of C in groups of rows, so that neighbours share what L2 holds."""
    rows, cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    block = tl.program_id(0)
    first = block // (GROUP * cols) * GROUP
    height = tl.minimum(rows - first, GROUP)
    m = first + block % (GROUP * cols) % height
    n = block % (GROUP * cols) // height
    i = (m * BM + tl.arange(0, BM)) % M
    j = (n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a = A + i[:, None] * K + k[None, :]
    b = B + k[:, None] * N + j[None, :]
    acc = tl.zeros([BM, BN], tl.float32)
    for at in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=k[None, :] < K - at * BK, other=0.0)
        y = tl.load(b, mask=k[:, None] < K - at * BK, other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
        a += BK
        b += BK * N
    i = m * BM + tl.arange(0, BM)
    j = n * BN + tl.arange(0, BN)
    tl.store(C + i[:, None] * N + j[None, :], acc.to(C.dtype.element_ty), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def exp2(x):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def attend(acc, total, most, q, K, V, i, lo, hi, scale, D: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr):
    d = tl.arange(0, D)
    for at in range(lo, hi, BN):
        at = tl.multiple_of(at, BN)
        j = at + tl.arange(0, BN)
        k = tl.load(K + j[None, :] * D + d[:, None])
        s = tl.dot(q, k)
        if MASKED:
            s = s * scale + tl.where(i[:, None] >= j[None, :], 0.0, -1.0e6)
            higher = tl.maximum(most, tl.max(s, 1))
            s -= higher[:, None]
        else:
            higher = tl.maximum(most, tl.max(s, 1) * scale)
            s = s * scale - higher[:, None]
        p = exp2(s)
        shrink = exp2(most - higher)
        acc = acc * shrink[:, None]
        v = tl.load(V + j[:, None] * D + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
        total = total * shrink + tl.sum(p, 1)
        most = higher
    return acc, total, most


@triton.jit
def attention_forward(Q, K, V, O, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """Attention of T queries a head: first the keys that all queries of the block see, then those on the diagonal."""
    first = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * T * D
    i = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + head + i[:, None] * D + d[None, :])
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.full([BM], 1.0, tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    scale *= 1.44269504
    if CAUSAL:
        acc, total, most = attend(acc, total, most, q, K + head, V + head, i, 0, first, scale, D, BN, False)
        acc, total, most = attend(acc, total, most, q, K + head, V + head, i, first, first + BM, scale, D, BN, True)
    else:
        acc, total, most = attend(acc, total, most, q, K + head, V + head, i, 0, T, scale, D, BN, False)
    tl.store(O + head + i[:, None] * D + d[None, :], (acc / total[:, None]).to(O.dtype.element_ty))

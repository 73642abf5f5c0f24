# Kernels of the shapes that Triton's tutorials teach, where kernels.py has none such: rows in stages, dropout, gradients, sums under a lock,
# tiles that few blocks share out among themselves, and launches that begin before the one ahead has ended.
import triton
import triton.language as tl


@triton.jit
def softmax_rows(X, Y, rows, cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(X + row * cols + i, mask=i < cols, other=float("-inf"))
        e = tl.exp(x - tl.max(x, 0))
        tl.store(Y + row * cols + i, e / tl.sum(e, 0), mask=i < cols)


@triton.jit
def dropout(X, Keep, Y, n, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(X + i, mask=mask)
    keep = tl.load(Keep + i, mask=mask)
    tl.store(Y + i, tl.where(keep != 0, x / (1 - p), 0.0), mask=mask)


@triton.jit
def dropout_seeded(X, Y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < n)
    tl.store(Y + i, tl.where(tl.rand(seed, i) > p, x / (1 - p), 0.0), mask=i < n)


@triton.jit
def layer_norm_backward(DX, DY, DW, DB, X, W, Mean, Scale, Lock, cols, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """A block a row. Gradients of the weights gather in GROUP rows, each under a lock; behind the locks is which rows have begun."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < cols
    x = tl.load(X + row * cols + i, mask=mask, other=0.0)
    dy = tl.load(DY + row * cols + i, mask=mask, other=0.0)
    w = tl.load(W + i, mask=mask, other=0.0)
    scale = tl.load(Scale + row)
    unit = tl.where(mask, (x - tl.load(Mean + row)) * scale, 0.0)
    g = w * dy
    dx = (g - unit * (tl.sum(unit * g, 0) / cols) - tl.sum(g, 0) / cols) * scale
    tl.store(DX + row * cols + i, dx, mask=mask)
    dw = dy * unit
    db = dy
    lock = Lock + row % GROUP
    begun = lock + GROUP
    DW += row % GROUP * cols + i
    DB += row % GROUP * cols + i
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(begun) == 0:
        tl.atomic_xchg(begun, 1)
    else:
        dw += tl.load(DW, mask=mask)
        db += tl.load(DB, mask=mask)
    tl.store(DW, dw, mask=mask)
    tl.store(DB, db, mask=mask)
    tl.debug_barrier()  # all warps have stored what the lock guards
    tl.atomic_xchg(lock, 0)


@triton.jit
def layer_norm_sums(DW, DB, W, B, rows, cols, BM: tl.constexpr, BN: tl.constexpr):
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    dw = tl.zeros([BM, BN], tl.float32)
    db = tl.zeros([BM, BN], tl.float32)
    for at in range(0, rows, BM):
        i = at + tl.arange(0, BM)
        mask = (i[:, None] < rows) & (j[None, :] < cols)
        dw += tl.load(DW + i[:, None] * cols + j[None, :], mask=mask, other=0.0)
        db += tl.load(DB + i[:, None] * cols + j[None, :], mask=mask, other=0.0)
    tl.store(W + j, tl.sum(dw, 0), mask=j < cols)
    tl.store(B + j, tl.sum(db, 0), mask=j < cols)


@triton.jit
def matmul_groups(As, Bs, Cs, Sizes, count, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of several shapes, multiples of the blocks, whose addresses are in tables; blocks walk the tiles of all."""
    tile = tl.program_id(0)
    first = 0
    for g in range(count):
        M = tl.load(Sizes + g * 3)
        N = tl.load(Sizes + g * 3 + 1)
        K = tl.load(Sizes + g * 3 + 2)
        cols = tl.cdiv(N, BN)
        last = first + tl.cdiv(M, BM) * cols
        while tile >= first and tile < last:
            A = tl.load(As + g).to(tl.pointer_type(tl.float16))
            B = tl.load(Bs + g).to(tl.pointer_type(tl.float16))
            C = tl.load(Cs + g).to(tl.pointer_type(tl.float16))
            i = (tile - first) // cols * BM + tl.arange(0, BM)
            j = (tile - first) % cols * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            a = A + i[:, None] * K + k[None, :]
            b = B + k[:, None] * N + j[None, :]
            acc = tl.zeros([BM, BN], tl.float32)
            for _ in range(0, tl.cdiv(K, BK)):
                tl.multiple_of(a, [16, 16])
                tl.multiple_of(b, [16, 16])
                acc = tl.dot(tl.load(a), tl.load(b), acc)
                a += BK
                b += BK * N
            tl.store(C + i[:, None] * N + j[None, :], acc.to(tl.float16))
            tile += tl.num_programs(0)
        first = last


@triton.jit
def tile_of(tile, rows, cols):
    """The row and column of a tile, of those that groups of 8 rows count through."""
    first = tile // (8 * cols) * 8
    height = tl.minimum(rows - first, 8)
    return first + tile % height, tile % (8 * cols) // height


@triton.jit
def persistent(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A[M,K] by B[K,N], by fewer blocks than tiles."""
    rows, cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    behind = tl.program_id(0) - tl.num_programs(0)
    for tile in tl.range(tl.program_id(0), rows * cols, tl.num_programs(0), flatten=True):
        m, n = tile_of(tile, rows, cols)
        i = m * BM + tl.arange(0, BM)
        j = n * BN + tl.arange(0, BN)
        i = tl.max_contiguous(tl.multiple_of(tl.where(i < M, i, 0), BM), BM)
        j = tl.max_contiguous(tl.multiple_of(tl.where(j < N, j, 0), BN), BN)
        acc = tl.zeros([BM, BN], tl.float32)
        for step in range(tl.cdiv(K, BK)):
            k = step * BK + tl.arange(0, BK)
            a = tl.load(A + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
            b = tl.load(B + k[:, None] * N + j[None, :], mask=k[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        behind += tl.num_programs(0)
        m, n = tile_of(behind, rows, cols)
        i = m * BM + tl.arange(0, BM)
        j = n * BN + tl.arange(0, BN)
        tl.store(C + i[:, None] * N + j[None, :], acc.to(C.dtype.element_ty), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def attention_delta(O, DO, Delta, T, D: tl.constexpr, BM: tl.constexpr):
    """The sums of O * DO, which the softmax's gradient takes."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    at = (tl.program_id(1) * T + i)[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(O + at, mask=i[:, None] < T, other=0.0).to(tl.float32)
    do = tl.load(DO + at, mask=i[:, None] < T, other=0.0).to(tl.float32)
    tl.store(Delta + tl.program_id(1) * T + i, tl.sum(o * do, 1), mask=i < T)


@triton.jit
def attention_backward(Q, K, V, DO, DQ, DK, DV, L, Delta, T, scale, D: tl.constexpr, BM: tl.constexpr):
    """A block has BM keys, whose gradients come from the queries behind them, and then the same rows of queries. L is the logarithm of
    what the weights of a query were divided by."""
    first = tl.program_id(0) * BM
    head = tl.program_id(1) * T
    d = tl.arange(0, D)[None, :]
    r = first + tl.arange(0, BM)
    rows = (head + r)[:, None] * D + d
    k = tl.load(K + rows, mask=r[:, None] < T, other=0.0)
    v = tl.load(V + rows, mask=r[:, None] < T, other=0.0)
    dk = tl.zeros([BM, D], tl.float32)
    dv = tl.zeros([BM, D], tl.float32)
    for at in range(first, T, BM):
        i = at + tl.arange(0, BM)
        others = (head + i)[:, None] * D + d
        q = tl.load(Q + others, mask=i[:, None] < T, other=0.0)
        do = tl.load(DO + others, mask=i[:, None] < T, other=0.0)
        l = tl.load(L + head + i, mask=i < T, other=0.0)
        delta = tl.load(Delta + head + i, mask=i < T, other=0.0)
        p = tl.exp(tl.dot(k, q.T) * scale - l[None, :])
        p = tl.where((i[None, :] >= r[:, None]) & (i[None, :] < T), p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, do.T) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    tl.store(DK + rows, (dk * scale).to(k.dtype), mask=r[:, None] < T)
    tl.store(DV + rows, dv.to(k.dtype), mask=r[:, None] < T)
    q = tl.load(Q + rows, mask=r[:, None] < T, other=0.0)
    do = tl.load(DO + rows, mask=r[:, None] < T, other=0.0)
    l = tl.load(L + head + r, mask=r < T, other=0.0)
    delta = tl.load(Delta + head + r, mask=r < T, other=0.0)
    dq = tl.zeros([BM, D], tl.float32)
    for at in range(0, tl.minimum(first + BM, T), BM):
        j = at + tl.arange(0, BM)
        others = (head + j)[:, None] * D + d
        k = tl.load(K + others, mask=j[:, None] < T, other=0.0)
        v = tl.load(V + others, mask=j[:, None] < T, other=0.0)
        p = tl.exp(tl.dot(q, k.T) * scale - l[:, None])
        p = tl.where((r[:, None] >= j[None, :]) & (j[None, :] < T), p, 0.0)
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(DQ + rows, (dq * scale).to(k.dtype), mask=r[:, None] < T)


# For Hopper.


@triton.jit
def add_dependent(X, Y, Z, n, BLOCK: tl.constexpr):
    """Begins while the launch ahead runs, and lets the next one begin."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.extra.cuda.gdc_wait()
    x = tl.load(X + i, mask=mask)
    y = tl.load(Y + i, mask=mask)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(Z + i, x + y, mask=mask)


@triton.jit
def matmul_groups_boxes(As, Bs, Cs, Sizes, count, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As matmul_groups, of any shape, with each B transposed."""
    tile = tl.program_id(0)
    first = 0
    for g in range(count):
        M = tl.load(Sizes + g * 3)
        N = tl.load(Sizes + g * 3 + 1)
        K = tl.load(Sizes + g * 3 + 2)
        cols = tl.cdiv(N, BN)
        last = first + tl.cdiv(M, BM) * cols
        if tile >= first and tile < last:
            A = tl.load(As + g).to(tl.pointer_type(tl.float16))
            B = tl.load(Bs + g).to(tl.pointer_type(tl.float16))
            C = tl.load(Cs + g).to(tl.pointer_type(tl.float16))
            a = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
            b = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
            c = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
            while tile >= first and tile < last:
                row, col = (tile - first) // cols * BM, (tile - first) % cols * BN
                acc = tl.zeros([BM, BN], tl.float32)
                for at in range(0, K, BK):
                    acc = tl.dot(a.load([row, at]), b.load([col, at]).T, acc)
                c.store([row, col], acc.to(tl.float16))
                tile += tl.num_programs(0)
        first = last


@triton.jit
def persistent_boxes(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, SPECIALISED: tl.constexpr):
    """A[M,K] by B[N,K] transposed, by fewer blocks than tiles; the halves of a tile are stored together or one by one."""
    rows, cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    behind = tl.program_id(0) - tl.num_programs(0)
    for tile in tl.range(tl.program_id(0), rows * cols, tl.num_programs(0), flatten=not SPECIALISED, warp_specialize=SPECIALISED):
        m, n = tile_of(tile, rows, cols)
        acc = tl.zeros([BM, BN], tl.float32)
        for step in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m * BM, step * BK]), b.load([n * BN, step * BK]).T, acc)
        behind += tl.num_programs(0)
        m, n = tile_of(behind, rows, cols)
        if HALVES:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            c.store([m * BM, n * BN], left.to(c.dtype))
            c.store([m * BM, n * BN + BN // 2], right.to(c.dtype))
        else:
            c.store([m * BM, n * BN], acc.to(c.dtype))


@triton.jit
def persistent_described(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, SPECIALISED: tl.constexpr):
    a = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(B, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2 if HALVES else BN])
    persistent_boxes(a, b, c, M, N, K, BM, BN, BK, HALVES, SPECIALISED)

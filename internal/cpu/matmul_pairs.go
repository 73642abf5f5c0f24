package cpu

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// orPairs multiplies matrices of bfloat16 in pairs where the level has instructions for it and the operands' layouts let
// it, and others as p does.
func orPairs(p prepare) prepare {
	return func(k *device.Kernel) (run, error) {
		if r, ok := newPairs(k); ok {
			return r, nil
		}
		return p(k)
	}
}

// leastPairs is the size of matrices from which zipping elements pays.
const leastPairs = 16

// newPairs reports whether an op can be multiplied so. The workspace has the sums, in float32.
func newPairs(k *device.Kernel) (run, bool) {
	x, y, z := k.Op.In(0), k.Op.In(1), k.Out[0]
	if !kernels.Pairs() || x.DType != dtype.BF16 || y.DType != dtype.BF16 || z.DType != dtype.BF16 {
		return nil, false
	}
	b := newBatch(k)
	p := kernels.HalfProduct{M: b.m, N: b.n, K: b.k, ARow: b.aRow, ACol: b.aCol, BRow: b.bRow, BCol: b.bCol, CRow: b.n}
	if len(b.dims) > 0 || min(b.m, b.n, b.k) < leastPairs || !p.Zips() {
		return nil, false
	}
	k.Workspace = 4 * int64(b.m) * int64(b.n)
	return func(args []device.Arg, _ *device.Params) error {
		q := p
		q.C, q.A, q.B = elems[dtype.BFloat16](args[0], z), elems[dtype.BFloat16](args[1], x), elems[dtype.BFloat16](args[2], y)
		q.Sums = workspace[float32](args[3], 0, p.M*p.N)
		kernels.GemmHalves(&q)
		return nil
	}, true
}

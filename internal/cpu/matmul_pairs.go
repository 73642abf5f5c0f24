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
		if q, ok := newPairs(k); ok {
			return q.run, nil
		}
		return p(k)
	}
}

// leastPairs is the size of matrices from which zipping elements pays.
const leastPairs = 16

// pairs is a product of bfloat16. Operands whose elements along k are adjacent are read as they lie; of others, two rows
// are joined to one in the workspace, where the result is too, in float32.
type pairs struct {
	m, n, k int
	a, b    side
	c       int64 // bytes of the result in the workspace; the joined operands come behind
	out     int
	join    *loop[zipping]
	convert *loop[conversion]
}

// side is an operand: lanes are the rows of A and the columns of B. Strides are in elements of bfloat16.
type side struct {
	lanes, lane, step int
	joined            int64 // where the pairs are in the workspace; -1: in the operand
}

// newPairs reports whether an op can be multiplied so.
func newPairs(k *device.Kernel) (*pairs, bool) {
	x, y := k.Op.In(0), k.Op.In(1)
	if !kernels.Pairs() || x.DType != dtype.BF16 || y.DType != dtype.BF16 || k.Out[0].DType != dtype.BF16 {
		return nil, false
	}
	b := newBatch(k)
	p := &pairs{m: b.m, n: b.n, k: b.k, a: side{b.m, b.aRow, b.aCol, -1}, b: side{b.n, b.bCol, b.bRow, -1},
		out: k.Out[0].Span(), join: newLoop(zipRows), convert: newLoop(convertChunk)}
	if len(b.dims) > 0 || min(b.m, b.n, b.k) < leastPairs {
		return nil, false
	}
	p.c = aligned(4 * int64(b.m) * int64(b.n))
	k.Workspace = p.c
	for _, s := range []*side{&p.a, &p.b} {
		if !s.paired(b.k) {
			if s.lane != 1 {
				return nil, false
			}
			s.joined = k.Workspace
			k.Workspace += aligned(4 * int64((b.k+1)/2) * int64(s.lanes))
		}
	}
	return p, true
}

// paired tells whether the operand's own memory can be read as pairs along k.
func (s *side) paired(k int) bool { return s.step == 1 && k%2 == 0 && s.lane%2 == 0 }

func (p *pairs) run(args []device.Arg, _ *device.Params) error {
	space := args[3]
	product := kernels.Product[float32]{M: p.m, N: p.n, K: (p.k + 1) / 2, C: workspace[float32](space, 0, p.m*p.n), CRow: p.n}
	product.A, product.ARow, product.ACol = p.operand(&p.a, args[1], space)
	product.B, product.BCol, product.BRow = p.operand(&p.b, args[2], space)
	kernels.GemmPairs(&product)
	p.convert.run(p.out, 1<<14, conversion{f32: product.C, bf16: values[dtype.BFloat16](args[0], p.out)})
	return nil
}

// operand is a side as a matrix of pairs, with the distances of its lanes and of its steps.
func (p *pairs) operand(s *side, a, space device.Arg) (data []float32, lane, step int) {
	if s.joined < 0 {
		return values[float32](a, ((s.lanes-1)*s.lane+p.k)/2), s.lane / 2, 1
	}
	steps := (p.k + 1) / 2
	j := zipping{dst: workspace[float32](space, s.joined, steps*s.lanes), src: values[uint16](a, (p.k-1)*s.step+s.lanes), n: s.lanes, step: s.step, k: p.k}
	p.join.run(steps, grainOf(s.lanes), j)
	return j.dst, 1, s.lanes
}

// zipping makes rows of pairs of n elements from k rows of bfloat16 that begin step elements apart.
type zipping struct {
	dst        []float32
	src        []uint16
	n, step, k int
}

func zipRows(j *zipping, lo, hi int) {
	for i := lo; i < hi; i++ {
		var high []uint16
		if 2*i+1 < j.k {
			high = j.src[(2*i+1)*j.step:][:j.n]
		}
		kernels.PairRows(j.dst[i*j.n:][:j.n], j.src[2*i*j.step:][:j.n], high)
	}
}

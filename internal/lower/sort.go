package lower

import (
	"math"
	"math/bits"

	"github.com/warpline-ml/warpline/internal/ir"
)

// sort is a bitonic network over rows that are filled up to a power of two: log²n/2 passes, each of which exchanges
// elements at one distance. Places tell equal elements apart, so that it keeps their order.
func sort(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	x, axis := in[0], int(op.Attr.Axis)
	shape := x.Type().Shape()
	k, n := int(op.Attr.Dims[0]), shape[axis]
	if k == 0 {
		k = n
	}
	if x.Type().Size() == 0 {
		out, _ := op.Infer()
		return []ir.Value{b.Zeros(out[0]), b.Zeros(out[1])}
	}
	rank := len(shape)
	order := make([]int, rank) // swaps the dimension with the last, which is its own inverse
	for i := range order {
		order[i] = i
	}
	order[axis], order[rank-1] = rank-1, axis
	x = b.Permute(x, order...)
	lines := x.Type().Size() / n
	s := sorter{b, op.Attr.Flag&ir.Descending != 0}
	v, places := s.rows(b.Reshape(x, lines, n))
	m := v.Type().Dim(1)
	for size := 2; size <= m; size *= 2 {
		for step := size / 2; step > 0; step /= 2 {
			v, places = s.exchange(v, places, size, step)
		}
	}
	lead := append([]int(nil), x.Type().Shape()...)
	lead[rank-1] = k
	back := func(y ir.Value) ir.Value {
		return b.Permute(b.Reshape(b.Slice(y, 1, 0, k, 1), lead...), order...)
	}
	return []ir.Value{back(v), back(places)}
}

type sorter struct {
	ir.B
	falling bool
}

// rows fills rows up with what comes last, and numbers their elements.
func (s *sorter) rows(x ir.Value) (v, places ir.Value) {
	t := x.Type()
	lines, n := t.Dim(0), t.Dim(1)
	m := 1 << bits.Len(uint(n-1))
	places = s.Expand(s.Count(m), []int{lines, m})
	if n == m {
		return x, places
	}
	switch {
	case t.DType.IsFloat() && s.falling:
		return s.Pad(x, 1, 0, m-n, 0, math.Inf(-1)), places
	case t.DType.IsFloat():
		return s.Pad(x, 1, 0, m-n, 0, math.NaN()), places
	}
	code := ir.ReduceMax
	if s.falling {
		code = ir.ReduceMin
	}
	filler := s.Expand(s.Reduce(code, x, 1<<1, true), []int{lines, m - n})
	return s.One(ir.Cat, ir.Attr{Axis: 1}, ir.Params{}, x, filler), places
}

// exchange puts each two elements at a distance in order, the other way round in every second part of the given size.
func (s *sorter) exchange(v, places ir.Value, size, step int) (ir.Value, ir.Value) {
	lines, m := v.Type().Dim(0), v.Type().Dim(1)
	pairs := m / (2 * step)
	halves := func(x ir.Value) (lo, hi ir.Value) {
		x = s.Reshape(x, lines, pairs, 2, step)
		return s.Slice(x, 2, 0, 1, 1), s.Slice(x, 2, 1, 1, 1)
	}
	a, b := halves(v)
	i, j := halves(places)
	above, below := s.before(b, a), s.before(a, b)
	if s.falling {
		above, below = below, above
	}
	swap := s.Binary(ir.Or, above, s.Binary(ir.And, s.Unary(ir.Not, below), s.Binary(ir.Lt, j, i)))
	if size < m {
		part := s.Binary(ir.Div, s.Count(pairs, 1, 1), s.Number(i.Type().DType, float64(size/(2*step))))
		two := s.Number(i.Type().DType, 2)
		odd := s.Binary(ir.Ne, s.Binary(ir.Rem, part, two), s.Number(i.Type().DType, 0))
		swap = s.Binary(ir.Xor, swap, odd)
	}
	joined := func(x, y ir.Value) ir.Value {
		both := s.One(ir.Cat, ir.Attr{Axis: 2}, ir.Params{}, s.Where(swap, y, x), s.Where(swap, x, y))
		return s.Reshape(both, lines, m)
	}
	return joined(a, b), joined(i, j)
}

// before tells where x < y; NaN is above all.
func (s *sorter) before(x, y ir.Value) ir.Value {
	less := s.Binary(ir.Lt, x, y)
	if !x.Type().DType.IsFloat() {
		return less
	}
	return s.Binary(ir.Or, less, s.Binary(ir.And, s.Binary(ir.Ne, y, y), s.Binary(ir.Eq, x, x)))
}

package cpu

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { offer(orPairs(inF32(precise(prepareMatMul))), ir.MatMul) }

func prepareMatMul(k *device.Kernel) (run, error) {
	b := newBatch(k)
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32:
		return floatMatMul[float32](k, b), nil
	case dtype.F64:
		return floatMatMul[float64](k, b), nil
	case dtype.I64:
		return intMatMul[int64](k, b), nil
	case dtype.I32:
		return intMatMul[int32](k, b), nil
	case dtype.U8:
		return intMatMul[uint8](k, b), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// batch is the sizes of a MatMul: one product per index of the leading dimensions, less those that fold into rows.
type batch struct {
	m, n, k    int
	aRow, aCol int
	bRow, bCol int
	count      int // products
	dims       []kernels.BatchDim
}

func newBatch(k *device.Kernel) *batch {
	x, y := k.Op.In(0), k.Op.In(1)
	r := x.Rank()
	sx, sy, sz := x.Strides(), y.Strides(), k.Out[0].Strides()
	p := &batch{m: x.Dim(-2), n: y.Dim(-1), k: x.Dim(-1), aRow: sx[r-2], aCol: sx[r-1], bRow: sy[r-2], bCol: sy[r-1], count: 1}
	for i := range r - 2 {
		if d := x.Dim(i); d != 1 {
			p.dims = append(p.dims, kernels.BatchDim{Size: d, A: sx[i], B: sy[i], C: sz[i]})
			p.count *= d
		}
	}
	p.fold()
	return p
}

// fold makes one product of those that share B while their matrices A lie below each other.
func (p *batch) fold() {
	for i := len(p.dims) - 1; i >= 0; i-- {
		d := p.dims[i]
		if d.B != 0 || d.Size == 0 || p.m != 1 && d.A != p.m*p.aRow {
			return
		}
		if p.m == 1 {
			p.aRow = d.A
		}
		p.m *= d.Size
		p.count /= d.Size
		p.dims = p.dims[:i]
	}
}

func floatMatMul[T float32 | float64](k *device.Kernel, p *batch) run {
	x, y, z := k.Op.In(0), k.Op.In(1), k.Out[0]
	return func(args []device.Arg, _ *device.Params) error {
		if z.Size() == 0 {
			return nil
		}
		kernels.GemmBatch(&kernels.Product[T]{M: p.m, N: p.n, K: p.k,
			A: elems[T](args[1], x), ARow: p.aRow, ACol: p.aCol,
			B: elems[T](args[2], y), BRow: p.bRow, BCol: p.bCol,
			C: elems[T](args[0], z), CRow: p.n}, p.dims)
		return nil
	}
}

type intArgs[T any] struct{ c, a, b []T }

func intMatMul[T int64 | int32 | uint8](k *device.Kernel, p *batch) run {
	x, y, z := k.Op.In(0), k.Op.In(1), k.Out[0]
	rows := newLoop(func(v *intArgs[T], lo, hi int) {
		for r := lo; r < hi; r++ {
			a, b := p.at(r / p.m)
			intRow(p, v.c[r*p.n:][:p.n], v.a[a+r%p.m*p.aRow:], v.b[b:])
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		switch {
		case z.Size() == 0:
		case p.k == 0:
			clear(elems[T](args[0], z))
		default:
			rows.run(p.count*p.m, grainOf(p.n*p.k), intArgs[T]{elems[T](args[0], z), elems[T](args[1], x), elems[T](args[2], y)})
		}
		return nil
	}
}

// at is where the operands of product i begin.
func (p *batch) at(i int) (a, b int) {
	for d := len(p.dims) - 1; d >= 0; d-- {
		j := i % p.dims[d].Size
		i /= p.dims[d].Size
		a += j * p.dims[d].A
		b += j * p.dims[d].B
	}
	return a, b
}

// intRow is one row of a product of integers, which wrap around.
func intRow[T int64 | int32 | uint8](p *batch, c, a, b []T) {
	clear(c)
	for l := range p.k {
		v, at := a[l*p.aCol], l*p.bRow
		for j := range c {
			c[j] += v * b[at+j*p.bCol]
		}
	}
}

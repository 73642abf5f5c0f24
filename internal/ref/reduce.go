package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(sum, ir.Sum)
	set(prod, ir.Prod)
	set(extreme(above[float64], above[int64]), ir.ReduceMax)
	set(extreme(below[float64], below[int64]), ir.ReduceMin)
	set(arg(above[float64], above[int64]), ir.ArgMax)
	set(arg(below[float64], below[int64]), ir.ArgMin)
	set(cumSum, ir.CumSum)
}

// above reports whether v takes the place of the largest so far: larger, or the first NaN.
func above[T int64 | float64](v, best T) bool { return v > best || v != v && best == best }

func below[T int64 | float64](v, best T) bool { return v < best || v != v && best == best }

// fold lists, for each result, the places of its elements in row-major order.
func fold(x *ir.Type, axes uint16, results int) [][]int {
	members := make([][]int, results)
	i := 0
	each(x.Shape(), func(at []int) {
		to := 0
		for d, v := range at {
			if axes>>d&1 == 0 {
				to = to*x.Dim(d) + v
			}
		}
		members[to] = append(members[to], i)
		i++
	})
	return members
}

// total adds numbers with the rounding errors carried along (Neumaier's summation), so that the reference is right to
// the last digit in f64 too.
type total struct{ sum, lost float64 }

func (t *total) add(v float64) {
	s := t.sum + v
	if math.Abs(t.sum) >= math.Abs(v) {
		t.lost += t.sum - s + v
	} else {
		t.lost += v - s + t.sum
	}
	t.sum = s
}

func (t *total) value() float64 {
	if math.IsInf(t.sum, 0) || t.sum != t.sum {
		return t.sum
	}
	return t.sum + t.lost
}

// folded combines the integers of each result, starting from an identity.
func (c *call) folded(first int64, f func(a, b int64) int64) ([]Array, error) {
	x := &c.in[0]
	v := make([]int64, c.out[0].Size())
	for i, list := range fold(x.Type, c.op.Attr.Axes, len(v)) {
		v[i] = first
		for _, j := range list {
			v[i] = f(v[i], x.int(j))
		}
	}
	return c.ints(v)
}

// numbers computes each result from x and the places of its elements.
func (c *call) numbers(f func(x []float64, list []int) float64) ([]Array, error) {
	v := make([]float64, c.out[0].Size())
	for i, list := range fold(c.in[0].Type, c.op.Attr.Axes, len(v)) {
		v[i] = f(c.in[0].Data, list)
	}
	return c.one(v)
}

func sum(c *call) ([]Array, error) {
	if integral(c.in[0].Type.DType) {
		return c.folded(0, func(a, b int64) int64 { return a + b })
	}
	return c.numbers(func(x []float64, list []int) float64 {
		var t total
		for _, j := range list {
			t.add(x[j])
		}
		return t.value()
	})
}

// product multiplies with the rounding errors carried along.
type product struct{ prod, lost float64 }

func (p *product) mul(v float64) {
	n := p.prod * v
	p.lost = p.lost*v + math.FMA(p.prod, v, -n)
	p.prod = n
}

func (p *product) value() float64 {
	if lost := p.lost; lost-lost == 0 { // finite
		return p.prod + lost
	}
	return p.prod
}

func prod(c *call) ([]Array, error) {
	if integral(c.in[0].Type.DType) {
		return c.folded(1, func(a, b int64) int64 { return a * b })
	}
	return c.numbers(func(x []float64, list []int) float64 {
		p := product{prod: 1}
		for _, j := range list {
			p.mul(x[j])
		}
		return p.value()
	})
}

// best is the place of the first element that none beats.
func best(x *Array, list []int, f func(a, b float64) bool, g func(a, b int64) bool) int {
	at := 0
	for k, j := range list {
		if integral(x.Type.DType) && g(x.int(j), x.int(list[at])) || !integral(x.Type.DType) && f(x.Data[j], x.Data[list[at]]) {
			at = k
		}
	}
	return at
}

func extreme(f func(a, b float64) bool, g func(a, b int64) bool) eval {
	return func(c *call) ([]Array, error) {
		var from []int
		for _, list := range fold(c.in[0].Type, c.op.Attr.Axes, c.out[0].Size()) {
			from = append(from, list[best(&c.in[0], list, f, g)])
		}
		return c.pick(&c.in[0], from, 0)
	}
}

func arg(f func(a, b float64) bool, g func(a, b int64) bool) eval {
	return func(c *call) ([]Array, error) {
		var v []int64
		for _, list := range fold(c.in[0].Type, 1<<c.axis(), c.out[0].Size()) {
			v = append(v, int64(best(&c.in[0], list, f, g)))
		}
		return c.ints(v)
	}
}

func cumSum(c *call) ([]Array, error) {
	x := &c.in[0]
	_, _, inner := split(x.Type.Shape(), c.axis())
	first := func(i int) bool { return i/inner%x.dim(c.axis()) == 0 }
	if integral(x.Type.DType) {
		v := make([]int64, len(x.Data))
		for i := range v {
			if v[i] = x.int(i); !first(i) {
				v[i] += v[i-inner]
			}
		}
		return c.ints(v)
	}
	v, along := make([]float64, len(x.Data)), make([]total, len(x.Data))
	for i := range v {
		if !first(i) {
			along[i] = along[i-inner]
		}
		along[i].add(x.Data[i])
		v[i] = along[i].value()
	}
	return c.one(v)
}

package ref

import "github.com/warpline-ml/warpline/internal/ir"

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

// folded combines the elements of each result, starting from an identity.
func (c *call) folded(first int64, f func(a, b float64) float64, g func(a, b int64) int64) ([]Array, error) {
	x := &c.in[0]
	members := fold(x.Type, c.op.Attr.Axes, c.out[0].Size())
	if integral(x.Type.DType) {
		v := make([]int64, len(members))
		for i, list := range members {
			v[i] = first
			for _, j := range list {
				v[i] = g(v[i], x.int(j))
			}
		}
		return c.ints(v)
	}
	v := make([]float64, len(members))
	for i, list := range members {
		v[i] = float64(first)
		for _, j := range list {
			v[i] = f(v[i], x.Data[j])
		}
	}
	return c.one(v)
}

func sum(c *call) ([]Array, error) {
	return c.folded(0, func(a, b float64) float64 { return a + b }, func(a, b int64) int64 { return a + b })
}

func prod(c *call) ([]Array, error) {
	return c.folded(1, func(a, b float64) float64 { return a * b }, func(a, b int64) int64 { return a * b })
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
	v := make([]float64, len(x.Data))
	for i := range v {
		if v[i] = x.Data[i]; !first(i) {
			v[i] += v[i-inner]
		}
	}
	return c.one(v)
}

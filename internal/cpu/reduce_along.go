package cpu

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareArg(argMax[float32], argMax[float64], argMax[int64], argMax[int32], argMax[uint8]), ir.ArgMax)
	offer(prepareArg(argMin[float32], argMin[float64], argMin[int64], argMin[int32], argMin[uint8]), ir.ArgMin)
	offer(prepareCumSum, ir.CumSum)
}

// along is a dense tensor seen from one of its dimensions: element (i, j, l) of outer×n×inner is at (i·n+j)·inner+l.
type along struct{ outer, n, inner int }

func alongOf(t *ir.Type, axis int8) along {
	v := along{1, t.Dim(int(axis)), 1}
	for d := range t.Rank() {
		switch {
		case d < int(axis):
			v.outer *= t.Dim(d)
		case d > int(axis):
			v.inner *= t.Dim(d)
		}
	}
	return v
}

// strips cuts the lines along the dimension into strips of neighbours.
type strips struct {
	along
	width, perRow int
}

func stripsOf(v along) strips {
	w := max(1, min(reduceTile, v.inner))
	return strips{v, w, (v.inner + w - 1) / w}
}

// each calls f with the outer index and the inner range of strips [lo, hi).
func (s *strips) each(lo, hi int, f func(i, l, n int)) {
	for ; lo < hi; lo++ {
		i := lo / s.perRow
		l := (lo - i*s.perRow) * s.width
		f(i, l, min(s.width, s.inner-l))
	}
}

// spread runs the chunks over all strips.
func (s *strips) spread(chunks *loop[[]device.Arg], args []device.Arg) {
	chunks.run(s.outer*s.perRow, s.grain(), args)
}

// grain is the number of strips that make a chunk.
func (s *strips) grain() int {
	return max(1, grainCheap/max(1, s.n*s.width))
}

// searching is ArgMax or ArgMin: the first of equals, and the first NaN before all.
type searching[T number] struct {
	strips
	chunks *loop[[]device.Arg]
	x      source[T]
	better func(places []int64, best, x []T, j int64) // one row j against the best so far
	find   func(x []T, best T, at int64, j int64) (T, int64)
}

func prepareArg(f32 func(*device.Kernel) run, f64 func(*device.Kernel) run, i64 func(*device.Kernel) run, i32 func(*device.Kernel) run, u8 func(*device.Kernel) run) prepare {
	return func(k *device.Kernel) (run, error) {
		switch dt := k.Op.In(0).DType; dt {
		case dtype.F32, dtype.F16, dtype.BF16:
			return f32(k), nil
		case dtype.F64:
			return f64(k), nil
		case dtype.I64:
			return i64(k), nil
		case dtype.I32:
			return i32(k), nil
		case dtype.U8:
			return u8(k), nil
		default:
			return nil, unsupported(&k.Op, dt)
		}
	}
}

func argMax[T number](k *device.Kernel) run {
	return searched(k,
		func(x []T, best T, at, j int64) (T, int64) {
			for i, v := range x {
				if above(v, best) {
					best, at = v, j+int64(i)
				}
			}
			return best, at
		},
		func(places []int64, best, x []T, j int64) {
			for i, v := range x {
				if above(v, best[i]) {
					best[i], places[i] = v, j
				}
			}
		})
}

func argMin[T number](k *device.Kernel) run {
	return searched(k,
		func(x []T, best T, at, j int64) (T, int64) {
			for i, v := range x {
				if below(v, best) {
					best, at = v, j+int64(i)
				}
			}
			return best, at
		},
		func(places []int64, best, x []T, j int64) {
			for i, v := range x {
				if below(v, best[i]) {
					best[i], places[i] = v, j
				}
			}
		})
}

func searched[T number](k *device.Kernel, find func(x []T, best T, at, j int64) (T, int64), better func(places []int64, best, x []T, j int64)) run {
	x := k.Op.In(0)
	a := &searching[T]{strips: stripsOf(alongOf(x, k.Op.Attr.Axis)), x: sourceOf[T](x), find: find, better: better}
	a.chunks = newLoop(a.span)
	return func(args []device.Arg, _ *device.Params) error {
		a.spread(a.chunks, args)
		return nil
	}
}

func (a *searching[T]) span(args *[]device.Arg, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	out := values[int64]((*args)[0], a.outer*a.inner)
	a.each(lo, hi, func(i, l, n int) {
		places := out[i*a.inner+l:][:n]
		if a.inner == 1 {
			places[0] = a.line((*args)[1], i*a.n, s)
			return
		}
		best := slot[T](s, slotC, n)
		for j := range a.n {
			x := a.x.load((*args)[1], (i*a.n+j)*a.inner+l, slot[T](s, slotX, n), s)
			if j == 0 {
				copy(best, x)
				clear(places)
				continue
			}
			a.better(places, best, x, int64(j))
		}
	})
}

// line searches a contiguous line.
func (a *searching[T]) line(x device.Arg, off int, s *scratch) int64 {
	var (
		best T
		at   int64
	)
	for j := 0; j < a.n; j += tile {
		n := min(tile, a.n-j)
		v := a.x.load(x, off+j, slot[T](s, slotX, n), s)
		if j == 0 {
			best = v[0]
		}
		best, at = a.find(v, best, at, int64(j))
	}
	return at
}

// summing is CumSum, with sums in A.
type summing[T, A number] struct {
	strips
	chunks *loop[[]device.Arg]
	x      source[T]
	out    sink[T]
}

func prepareCumSum(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		return summed[float32, float64](k), nil
	case dtype.F64:
		return summed[float64, float64](k), nil
	case dtype.I64:
		return summed[int64, int64](k), nil
	case dtype.I32:
		return summed[int32, int32](k), nil
	case dtype.U8:
		return summed[uint8, uint8](k), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

func summed[T, A number](k *device.Kernel) run {
	x := k.Op.In(0)
	c := &summing[T, A]{strips: stripsOf(alongOf(x, k.Op.Attr.Axis)), x: sourceOf[T](x), out: sinkOf[T](k.Out[0])}
	c.chunks = newLoop(c.span)
	return func(args []device.Arg, _ *device.Params) error {
		c.spread(c.chunks, args)
		return nil
	}
}

func (c *summing[T, A]) span(a *[]device.Arg, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	args := *a
	c.each(lo, hi, func(i, l, n int) {
		if c.inner == 1 {
			c.line(args, i*c.n, s)
			return
		}
		acc := slot[A](s, slotC, n)
		clear(acc)
		for j := range c.n {
			off := (i*c.n+j)*c.inner + l
			x := c.x.load(args[1], off, slot[T](s, slotX, n), s)
			dst := c.out.begin(args[0], off, slot[T](s, slotOut, n))
			for l, v := range x {
				acc[l] += A(v)
				dst[l] = T(acc[l])
			}
			c.out.commit(args[0], off, dst, s)
		}
	})
}

// line sums along a contiguous line.
func (c *summing[T, A]) line(args []device.Arg, off int, s *scratch) {
	var acc A
	for j := 0; j < c.n; j += tile {
		n := min(tile, c.n-j)
		x := c.x.load(args[1], off+j, slot[T](s, slotX, n), s)
		dst := c.out.begin(args[0], off+j, slot[T](s, slotOut, n))
		for i, v := range x {
			acc += A(v)
			dst[i] = T(acc)
		}
		c.out.commit(args[0], off+j, dst, s)
	}
}

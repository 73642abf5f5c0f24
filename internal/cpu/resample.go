package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareResample[float32], prepareResample[float64]), ir.Resample)
	offer(forFloats(prepareResampleGrad[float32], prepareResampleGrad[float64]), ir.ResampleGrad)
}

// taps is a sparse matrix that a dimension is multiplied with: element o of the result is the sum of w[k]·x[at[k]], k from start[o]
// to start[o+1].
type taps[T kernels.Float] struct {
	start, at []int
	w         []T
}

func (t *taps[T]) end() { t.start = append(t.start, len(t.at)) }

func (t *taps[T]) add(at int, w T) { t.at, t.w = append(t.at, at), append(t.w, w) }

// of is what element o is made of.
func (t *taps[T]) of(o int) (at []int, w []T) {
	return t.at[t.start[o]:t.start[o+1]], t.w[t.start[o]:t.start[o+1]]
}

func newTaps[T kernels.Float](r ir.Resampling, n int) *taps[T] {
	t := &taps[T]{}
	t.end()
	for o := range r.Size {
		switch r.Curve {
		case ir.Nearest:
			t.add(min(int(float32(o)*float32(r.Step)), n-1), 1)
		case ir.NearestMiddle:
			t.add(min(int((float32(o)+0.5)*float32(r.Step)), n-1), 1)
		case ir.Lines:
			at := min(max(placeOf[T](r, o), 0), T(n-1))
			low := int(at)
			t.add(low, 1-(at-T(low)))
			t.add(min(low+1, n-1), at-T(low))
		case ir.Cubics:
			at := float64(placeOf[T](r, o))
			low := math.Floor(at)
			for k := range 4 {
				t.add(min(max(int(low)+k-1, 0), n-1), T(keys(math.Abs(at-low+float64(1-k)), -0.75)))
			}
		default:
			t.addWindow(r, n, o)
		}
		t.end()
	}
	return t
}

// placeOf is where result o lies in x.
func placeOf[T kernels.Float](r ir.Resampling, o int) T {
	if r.Corners {
		return T(o) * T(r.Step)
	}
	return T((T(o)+0.5)*T(r.Step)) - 0.5
}

func (t *taps[T]) addWindow(r ir.Resampling, n, o int) {
	center := float64((T(o) + 0.5) * T(r.Step))
	reach, wide := r.Reach()
	from, to := int(max(center+0.5-reach, 0)), min(int(center+0.5+reach), n)
	sum := 0.0
	weight := func(j int) float64 {
		d := math.Abs((float64(j) - center + 0.5) / wide)
		if r.Curve == ir.CubicWindows {
			return keys(d, -0.5)
		}
		return max(1-d, 0)
	}
	for j := from; j < to; j++ {
		sum += weight(j)
	}
	for j := from; j < to; j++ {
		t.add(j, T(weight(j)/sum))
	}
}

// keys is Keys' kernel at a distance.
func keys(d, a float64) float64 {
	switch {
	case d < 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return (d - 1) * (d - 2) * (d - 2) * a
	}
	return 0
}

// transposed is the matrix of the gradient of n elements.
func (t *taps[T]) transposed(n int) *taps[T] {
	rows := make([]taps[T], n)
	for o := range len(t.start) - 1 {
		at, w := t.of(o)
		for k, i := range at {
			rows[i].add(o, w[k])
		}
	}
	all := &taps[T]{}
	all.end()
	for i := range rows {
		all.at, all.w = append(all.at, rows[i].at...), append(all.w, rows[i].w...)
		all.end()
	}
	return all
}

func prepareResample[T kernels.Float](k *device.Kernel) (run, error) {
	r, x := k.Op.Attr.Resampling(), k.Op.In(0)
	return resampling(k, newTaps[T](r, x.Dim(r.Axis))), nil
}

func prepareResampleGrad[T kernels.Float](k *device.Kernel) (run, error) {
	r, n := k.Op.Attr.Resampling(), k.Out[0].Dim(int(k.Op.Attr.Axis))
	return resampling(k, newTaps[T](r, n).transposed(n)), nil
}

// Lines of the last dimension are turned, so that as many as lineBlock are worked on side by side, where these fit in a cache.
const (
	lineBlock = 64
	lineSpace = 1 << 15 // elements
	rowStrip  = 1 << 12 // elements of a row at a time
)

// sampler multiplies a dimension with taps.
type sampler[T kernels.Float] struct {
	*taps[T]
	x     along
	out   int // elements of a line of results
	block int // lines side by side; 0: each alone
	space *spare[[]T]
}

// resampling is the product of the only operand with taps.
func resampling[T kernels.Float](k *device.Kernel, t *taps[T]) run {
	x, y := k.Op.In(0), k.Out[0]
	s := &sampler[T]{taps: t, x: alongOf(x, k.Op.Attr.Axis), out: y.Dim(int(k.Op.Attr.Axis))}
	units, each := s.x.outer*s.out, s.x.inner*len(t.at)/s.out
	body := s.rows
	if s.x.inner == 1 {
		units, each, body = s.x.outer, len(t.at), s.lines
		if s.block = min(lineBlock, lineSpace/(s.x.n+s.out)); s.block >= 8 {
			s.space = newBuffers[T](s.block * (s.x.n + s.out))
			units, each, body = cuts(s.x.outer, s.block), each*s.block, s.blocks
		}
	}
	parts := newLoop(body)
	return func(args []device.Arg, _ *device.Params) error {
		parts.run(units, grainOf(each), resampleArgs[T]{y: elems[T](args[0], y), x: elems[T](args[1], x)})
		return nil
	}
}

type resampleArgs[T any] struct{ y, x []T }

// rows makes rows of results of neighbours.
func (s *sampler[T]) rows(a *resampleArgs[T], lo, hi int) {
	inner := s.x.inner
	for u := lo; u < hi; u++ {
		x := a.x[u/s.out*s.x.n*inner:][:s.x.n*inner]
		at, w := s.of(u % s.out)
		for from := 0; from < inner; from += rowStrip {
			n := min(rowStrip, inner-from)
			combine(a.y[u*inner+from:][:n], x[from:], inner, at, w)
		}
	}
}

// blocks makes the results of blocks of lines.
func (s *sampler[T]) blocks(a *resampleArgs[T], lo, hi int) {
	space := s.space.get()
	defer s.space.put(space)
	for u := lo; u < hi; u++ {
		n := min(s.block, s.x.outer-u*s.block)
		x, y := (*space)[:s.x.n*n], (*space)[s.x.n*n:][:s.out*n]
		turn(x, a.x[u*s.block*s.x.n:], s.x.n, n, n, s.x.n)
		for o := range s.out {
			at, w := s.of(o)
			combine(y[o*n:][:n], x, n, at, w)
		}
		turn(a.y[u*s.block*s.out:], y, n, s.out, s.out, n)
	}
}

// lines makes the results of lines, one by one.
func (s *sampler[T]) lines(a *resampleArgs[T], lo, hi int) {
	for l := lo; l < hi; l++ {
		x, y := a.x[l*s.x.n:][:s.x.n], a.y[l*s.out:][:s.out]
		for o := range y {
			at, w := s.of(o)
			var sum T
			for k, i := range at {
				sum += w[k] * x[i]
			}
			y[o] = sum
		}
	}
}

// turn transposes: dst[r·ds+c] = src[c·ss+r].
func turn[T kernels.Float](dst, src []T, rows, columns, ds, ss int) {
	if d, ok := any(dst).([]float32); ok {
		kernels.Turn(asBits(d), asBits(any(src).([]float32)), rows, columns, ds, ss)
		return
	}
	for r := range rows {
		for c := range columns {
			dst[r*ds+c] = src[c*ss+r]
		}
	}
}

// combine is the sum of rows of x, apart from each other, with weights.
func combine[T kernels.Float](dst, x []T, apart int, at []int, w []T) {
	row := func(k int) []T { return x[at[k]*apart:][:len(dst)] }
	switch {
	case len(at) == 0:
		clear(dst)
	case len(at) == 1 && w[0] == 1:
		copy(dst, row(0))
	case len(at) == 1:
		rescale(dst, row(0), 0, w[0], 0)
	default:
		mix(dst, row(0), row(1), w[0], -w[1], 0, 0)
		for k := 2; k < len(at); k++ {
			addScaled(dst, row(k), w[k])
		}
	}
}

func addScaled[T kernels.Float](dst, x []T, p T) {
	if d, ok := any(dst).([]float32); ok {
		kernels.Axpy(d, d, any(x).([]float32), float32(p))
		return
	}
	for i, v := range x {
		dst[i] += p * v
	}
}

package conform

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		switch row := code.Row(); {
		case !row.OverAxes():
		case row.Tolerance == ir.Factors:
			offer(reduceCases(near1), code)
		default:
			offer(reduceCases(plain), code)
		}
	}
	offer(argCases, ir.ArgMax, ir.ArgMin)
	offer(cumSumCases, ir.CumSum)
	offer(matMulCases, ir.MatMul)
	offer(linearCases, ir.Linear)
	offer(biasGradCases, ir.BiasGrad)
	offer(convCases, ir.Conv2d, ir.Conv2dGradInput, ir.Conv2dGradWeight)
	offer(poolCases, ir.MaxPool2d, ir.MaxPool2dGrad, ir.AvgPool2d, ir.AvgPool2dGrad)
	offer(resampleCases, ir.Resample, ir.ResampleGrad)
}

func reduceCases(floats fill) func(g *gen) {
	return func(g *gen) {
		f := floats
		if !g.dt.IsFloat() {
			f = plain
		}
		m, n := g.big()
		over := func(axes uint16, keep bool) ir.Attr { return ir.Attr{Axes: axes, Keep: keep} }
		g.add("no dimension", over(0, false), ir.Params{}, g.of(f))
		g.add("of one", over(1, true), ir.Params{}, g.of(f, 1))
		g.add("none", over(0, false), ir.Params{}, g.of(f, 3, 4))
		for axes := uint16(1); axes < 8; axes++ {
			g.add("some dimensions", over(axes, axes%2 == 0), ir.Params{}, g.of(f, 3, 7, 5))
			g.add("dimensions of a view", over(axes, false), ir.Params{}, operand{transposed(g.dt, 3, 7, 5), f})
		}
		for _, axes := range []uint16{1, 2, 3} {
			g.add("a large shape", over(axes, false), ir.Params{}, g.of(f, m, n))
			for _, name := range viewNames {
				g.add(name, over(axes, true), ir.Params{}, operand{g.views(m, n)[name], f})
			}
		}
		g.add("no results", over(1, false), ir.Params{}, g.of(f, 3, 0))
		g.add("few long rows", over(2, false), ir.Params{}, g.of(f, 2, g.long()))
		g.add("few long columns", over(1, false), ir.Params{}, g.of(f, g.long(), 3))
		if g.code == ir.Sum || g.code == ir.Prod {
			g.add("of nothing", over(2, false), ir.Params{}, g.of(f, 3, 0))
		}
		g.extremesOf(over(2, false))
	}
}

// long is a length that engines cut into parts.
func (g *gen) long() int {
	if g.short {
		return 2053
	}
	return 40009
}

// extremesOf adds rows with NaN, infinities and ties.
func (g *gen) extremesOf(a ir.Attr) {
	g.add("ties", a, ir.Params{}, g.of(few, 9, 31))
	if !g.dt.IsFloat() {
		return
	}
	inf, nan := math.Inf(1), math.NaN()
	g.add("NaN and infinities", a, ir.Params{}, g.of(values([]float64{1, nan, 2, nan, inf, 1, -inf, 0, -inf, -inf, -inf, -inf, 0, math.Copysign(0, -1), 1, 1}, 1), 4, 4))
	g.add("a late NaN", a, ir.Params{}, g.of(values(append(make([]float64, 66), nan), 1), 3, 67))
}

func argCases(g *gen) {
	m, n := g.big()
	over := func(axis int8, keep bool) ir.Attr { return ir.Attr{Axis: axis, Keep: keep} }
	g.add("of one", over(0, false), ir.Params{}, g.of(plain, 1))
	for axis := range int8(3) {
		g.add("a dimension", over(axis, axis == 1), ir.Params{}, g.of(plain, 3, 7, 5))
		g.add("ties", over(axis, false), ir.Params{}, g.of(few, 5, 11, 9))
	}
	g.add("a large shape", over(1, false), ir.Params{}, g.of(plain, m, n))
	g.add("a large shape", over(0, false), ir.Params{}, g.of(plain, m, n))
	g.add("a long row", over(0, false), ir.Params{}, g.of(plain, g.long()))
	g.add("no results", over(1, false), ir.Params{}, g.of(plain, 0, 3))
	g.extremesOf(over(1, false))
}

func cumSumCases(g *gen) {
	m, n := g.big()
	for axis := range int8(3) {
		g.add("a dimension", ir.Attr{Axis: axis}, ir.Params{}, g.of(plain, 3, 7, 5))
	}
	g.add("nothing", ir.Attr{}, ir.Params{}, g.of(plain, 0))
	g.add("a large shape", ir.Attr{Axis: 1}, ir.Params{}, g.of(plain, m, n))
	g.add("a large shape", ir.Attr{Axis: 0}, ir.Params{}, g.of(plain, m, n))
	g.add("a long row", ir.Attr{}, ir.Params{}, g.of(plain, g.long()))
}

func matMulCases(g *gen) {
	sizes := [][3]int{{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 7, 1}, {1, 5, 33}, {33, 5, 1}, {3, 5, 2}, {7, 13, 5}, {16, 16, 16},
		{14, 9, 32}, {15, 300, 33}, {64, 31, 65}, {97, 40, 129}}
	if !g.short {
		sizes = append(sizes, [3]int{129, 515, 67}, [3]int{301, 7, 200}, [3]int{2, 3000, 3})
	}
	for _, s := range sizes {
		g.add("a size", ir.Attr{}, ir.Params{}, g.of(plain, s[0], s[1]), g.of(plain, s[1], s[2]))
	}
	for _, s := range [][3]int{{5, 7, 3}, {67, 33, 45}} {
		m, k, n := s[0], s[1], s[2]
		for i, name := range viewNames {
			other := viewNames[(i+1)%len(viewNames)]
			g.add(name+" and row-major", ir.Attr{}, ir.Params{}, operand{g.views(m, k)[name], plain}, g.of(plain, k, n))
			g.add("row-major and "+name, ir.Attr{}, ir.Params{}, g.of(plain, m, k), operand{g.views(k, n)[name], plain})
			g.add(name+" and "+other, ir.Attr{}, ir.Params{}, operand{g.views(m, k)[name], plain}, operand{g.views(k, n)[other], plain})
		}
	}
	if g.dt.IsFloat() {
		for _, s := range [][3]int{{1, 1, 1}, {3, 0, 2}, {33, 5, 70}, {65, 1100, 67}} {
			g.add("wide sums", ir.Attr{DType: ir.Wide(g.dt)}, ir.Params{}, g.of(plain, s[0], s[1]), g.of(plain, s[1], s[2]))
		}
	}
	g.precise(func(p ir.Precision) {
		for _, s := range [][3]int{{1, 1, 1}, {3, 0, 2}, {5, 7, 3}, {33, 5, 70}, {67, 33, 45}, {129, 515, 67}, {65, 1100, 67}} {
			g.add("a precision", ir.Attr{Precision: p}, ir.Params{}, g.of(normal, s[0], s[1]), g.of(normal, s[1], s[2]))
		}
		for i, name := range viewNames {
			other := viewNames[(i+1)%len(viewNames)]
			g.add("a precision of "+name+" and "+other, ir.Attr{Precision: p}, ir.Params{}, operand{g.views(67, 33)[name], normal}, operand{g.views(33, 45)[other], normal})
		}
		g.add("a precision of a batch", ir.Attr{Precision: p}, ir.Params{}, g.of(normal, 3, 2, 15, 37), g.of(normal, 3, 2, 37, 14))
	})
	g.add("a batch", ir.Attr{}, ir.Params{}, g.of(plain, 3, 2, 5, 7), g.of(plain, 3, 2, 7, 4))
	g.add("an empty batch", ir.Attr{}, ir.Params{}, g.of(plain, 0, 5, 7), g.of(plain, 0, 7, 4))
	g.add("a repeated batch", ir.Attr{}, ir.Params{}, operand{repeated(g.dt, 0, 3, 17, 9), plain}, g.of(plain, 3, 9, 21))
	swapped := ir.Strided(g.dt, []int{4, 19, 11}, []int{209, 1, 19})
	g.add("a batch of transposed", ir.Attr{}, ir.Params{}, operand{swapped, plain}, g.of(plain, 4, 11, 6))
	heads := ir.Strided(g.dt, []int{3, 4, 10, 8}, []int{320, 8, 32, 1})
	g.add("heads between rows", ir.Attr{}, ir.Params{}, operand{heads, plain}, operand{ir.Strided(g.dt, []int{3, 4, 8, 10}, []int{320, 8, 1, 32}), plain})
}

func linearCases(g *gen) {
	for _, act := range ir.Acts() {
		a := ir.Attr{Act: act}
		both := ir.Attr{Act: act, Flag: ir.Before}
		g.add("with sums and a wide bias", both, ir.Params{}, g.of(normal, 17, 33), g.of(normal, 35, 33), g.wide(normal, 35))
		g.add("with sums, one row", both, ir.Params{}, g.of(normal, 1, 129), g.of(normal, 65, 129), g.of(normal, 65))
		g.add("with sums of many terms", both, ir.Params{}, g.of(normal, 3, 1100), g.of(normal, 37, 1100), g.wide(normal, 37))
		for _, s := range [][3]int{{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {5, 7, 3}, {17, 33, 35}, {1, 129, 65}} {
			g.add("with bias", a, ir.Params{}, g.of(normal, s[0], s[1]), g.of(normal, s[2], s[1]), g.of(normal, s[2]))
		}
		g.add("without bias", a, ir.Params{}, g.of(normal, 9, 31), g.of(normal, 15, 31))
		g.add("more dimensions", a, ir.Params{}, g.of(normal, 2, 3, 5), g.of(normal, 4, 5), g.of(normal, 4))
		g.add("a vector", a, ir.Params{}, g.of(normal, 5), g.of(normal, 4, 5))
		g.precise(func(p ir.Precision) {
			at := ir.Attr{Act: act, Precision: p}
			g.add("a precision", at, ir.Params{}, g.of(normal, 17, 33), g.of(normal, 35, 33), g.of(normal, 35))
			at.Flag = ir.Before
			g.add("a precision with sums", at, ir.Params{}, g.of(normal, 3, 1100), g.of(normal, 37, 1100), g.of(normal, 37))
		})
		if !g.short {
			g.add("a large shape", a, ir.Params{}, g.of(normal, 131, 70), g.of(normal, 99, 70), g.of(normal, 99))
		}
	}
}

func biasGradCases(g *gen) {
	wide := ir.Attr{DType: ir.Wide(g.dt)}
	for _, s := range [][2]int{{1, 1}, {0, 3}, {3, 0}, {5, 7}, {33, 132}, {67, 260}, {301, 8}} {
		g.add("a sum", wide, ir.Params{}, g.of(normal, s[0], s[1]))
		for i, act := range ir.Acts()[1:] {
			a := ir.Attr{Act: act}
			if i%2 == 0 {
				a.DType = wide.DType
			}
			g.add(act.String(), a, ir.Params{}, g.of(normal, s[0], s[1]), g.of(normal, s[0], s[1]))
		}
	}
}

// convolution is the sizes of a convolution: x[n,c,h,w] with w[o,c/groups,kh,kw].
type convolution struct {
	x, w [4]int
	ir.Conv
}

func simple(stride, pad, dilation, groups int) ir.Conv {
	return ir.Conv{StrideH: stride, StrideW: stride, PadH: pad, PadW: pad, DilationH: dilation, DilationW: dilation, Groups: groups}
}

func convCases(g *gen) {
	list := []convolution{
		{[4]int{1, 1, 1, 1}, [4]int{1, 1, 1, 1}, simple(1, 0, 1, 1)},
		{[4]int{2, 3, 5, 7}, [4]int{4, 3, 3, 3}, simple(1, 1, 1, 1)},
		{[4]int{2, 3, 8, 9}, [4]int{5, 3, 1, 1}, simple(1, 0, 1, 1)},
		{[4]int{1, 2, 9, 8}, [4]int{3, 2, 3, 2}, simple(2, 0, 1, 1)},
		{[4]int{1, 2, 11, 13}, [4]int{3, 2, 3, 3}, simple(1, 2, 2, 1)},
		{[4]int{2, 4, 6, 5}, [4]int{6, 2, 3, 3}, simple(1, 1, 1, 2)},
		{[4]int{1, 4, 7, 6}, [4]int{4, 1, 3, 3}, simple(1, 1, 1, 4)},
		{[4]int{2, 4, 9, 8}, [4]int{4, 2, 3, 2}, ir.Conv{StrideH: 2, StrideW: 3, PadH: 2, PadW: 1, DilationH: 1, DilationW: 2, Groups: 2}},
		{[4]int{1, 1, 6, 6}, [4]int{1, 1, 1, 1}, simple(4, 0, 1, 1)},
		{[4]int{0, 2, 5, 5}, [4]int{3, 2, 3, 3}, simple(1, 1, 1, 1)},
		{[4]int{1, 2, 3, 3}, [4]int{2, 2, 5, 5}, simple(1, 4, 1, 1)},
	}
	if !g.short {
		list = append(list, convolution{[4]int{3, 18, 19, 17}, [4]int{17, 18, 3, 3}, simple(1, 1, 1, 1)},
			convolution{[4]int{2, 3, 30, 31}, [4]int{16, 3, 7, 7}, simple(2, 3, 1, 1)})
	}
	for _, c := range list {
		g.convolution(c)
	}
}

func (g *gen) convolution(c convolution) {
	a, x, w := c.Attr(), g.of(normal, c.x[:]...), g.of(normal, c.w[:]...)
	forward := ir.New(ir.Conv2d, a, x.t, w.t)
	out, err := forward.Infer()
	if err != nil {
		panic("conform: " + err.Error())
	}
	y := operand{out[0], normal}
	switch g.code {
	case ir.Conv2d:
		g.add("without bias", a, ir.Params{}, x, w)
		g.add("with bias", a, ir.Params{}, x, w, g.of(normal, c.w[0]))
		g.inTF32(a, x, w, g.of(normal, c.w[0]))
	case ir.Conv2dGradInput:
		a.Out = x.t
		g.add("a size", a, ir.Params{}, y, w)
		g.inTF32(a, y, w)
	case ir.Conv2dGradWeight:
		a.Out = w.t
		g.add("a size", a, ir.Params{}, y, x)
		g.inTF32(a, y, x)
	}
}

func poolCases(g *gen) {
	type pooling struct {
		x [4]int
		ir.Pool
	}
	square := func(k, s, p int) ir.Pool {
		return ir.Pool{KernelH: k, KernelW: k, StrideH: s, StrideW: s, PadH: p, PadW: p}
	}
	list := []pooling{
		{[4]int{1, 1, 1, 1}, square(1, 1, 0)}, {[4]int{2, 3, 4, 6}, square(2, 2, 0)}, {[4]int{2, 3, 5, 7}, square(2, 2, 0)},
		{[4]int{1, 2, 7, 6}, square(3, 2, 1)}, {[4]int{1, 2, 5, 5}, square(3, 1, 1)}, {[4]int{0, 2, 5, 5}, square(2, 2, 0)},
		{[4]int{2, 2, 6, 9}, ir.Pool{KernelH: 2, KernelW: 3, StrideH: 2, StrideW: 1, PadH: 1, PadW: 1}}, {[4]int{1, 3, 7, 7}, square(7, 1, 0)},
		{[4]int{1, 1, 9, 9}, square(2, 3, 0)},
	}
	if !g.short {
		list = append(list, pooling{[4]int{5, 7, 33, 35}, square(3, 2, 1)}, pooling{[4]int{8, 16, 28, 28}, square(2, 2, 0)})
	}
	for _, p := range list {
		g.pooling(p.x, p.Pool)
	}
	if g.code == ir.MaxPool2d {
		nan, inf := math.NaN(), math.Inf(-1)
		tied := []float64{1, 1, 2, 2, 1, 1, 2, 2, 5, 0, nan, 3, 0, 5, 4, nan}
		g.add("ties and NaN", square(2, 2, 0).Attr(), ir.Params{}, g.of(values(tied, 1), 1, 1, 4, 4))
		g.add("ties and NaN in overlapping windows", square(3, 1, 1).Attr(), ir.Params{}, g.of(values(tied, 1), 1, 1, 4, 4))
		g.add("minus infinity", square(3, 1, 1).Attr(), ir.Params{}, g.of(values([]float64{inf}, 1), 1, 2, 3, 3))
	}
	if g.code == ir.MaxPool2dGrad {
		a := square(2, 2, 0).Attr()
		a.Out = ir.Dense(g.dt, 1, 1, 4, 4)
		g.add("a place outside of the plane", a, ir.Params{}, g.of(normal, 1, 1, 2, 2), g.outside(16, 1, 1, 2, 2)).Fails = true
	}
}

func (g *gen) pooling(shape [4]int, p ir.Pool) {
	a, x := p.Attr(), ir.Dense(g.dt, shape[:]...)
	forward := ir.New(ir.AvgPool2d, a, x)
	out, err := forward.Infer()
	if err != nil {
		panic("conform: " + err.Error())
	}
	y := operand{out[0], normal}
	switch g.code {
	case ir.MaxPool2d, ir.AvgPool2d:
		g.add("a size", a, ir.Params{}, operand{x, normal})
	case ir.AvgPool2dGrad:
		a.Out = x
		g.add("a size", a, ir.Params{}, y)
	case ir.MaxPool2dGrad:
		a.Out = x
		g.add("a size", a, ir.Params{}, y, operand{out[0].As(dtype.I64), between(0, shape[2]*shape[3])})
	}
}

func resampleCases(g *gen) {
	type size struct {
		shape     []int
		axis, out int
	}
	list := []size{
		{[]int{1}, 0, 1}, {[]int{1}, 0, 3}, {[]int{7}, 0, 3}, {[]int{3, 5}, 1, 10}, {[]int{3, 5}, 0, 7}, {[]int{2, 9, 4}, 1, 4}, {[]int{70, 11}, 1, 5},
		{[]int{2, 1, 3, 3}, 3, 8}, {[]int{2, 3, 6, 5}, 2, 13}, {[]int{0, 4}, 1, 8}, {[]int{4, 0}, 0, 8},
	}
	if !g.short {
		list = append(list, size{[]int{5, 3, 13, 35}, 3, 70}, size{[]int{2, 61, 129}, 1, 20}, size{[]int{3, 700}, 1, 7})
	}
	for _, s := range list {
		n := float64(s.shape[s.axis])
		for curve := ir.Nearest; curve <= ir.CubicWindows; curve++ {
			r := ir.Resampling{Axis: s.axis, Size: s.out, Curve: curve, Step: n / float64(s.out)}
			g.resampling("halves", r, s.shape)
			r.Step = n / (float64(s.out) + 0.4)
			g.resampling("an uneven step", r, s.shape)
			if curve > ir.NearestMiddle {
				r.Corners, r.Step = true, (n-1)/float64(max(s.out-1, 1))
				g.resampling("corners", r, s.shape)
			}
		}
	}
}

func (g *gen) resampling(why string, r ir.Resampling, shape []int) {
	a, x := r.Attr(), ir.Dense(g.dt, shape...)
	if g.code == ir.Resample {
		g.add(why, a, ir.Params{}, operand{x, normal})
		return
	}
	y := slices.Clone(shape)
	y[r.Axis] = r.Size
	a.Out = x
	g.add(why, a, ir.Params{}, g.of(normal, y...))
}

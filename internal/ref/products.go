package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(precise(matMul), ir.MatMul)
	set(precise(linear), ir.Linear)
	set(biasGrad, ir.BiasGrad)
	set(precise(conv), ir.Conv2d)
	set(precise(convGradInput), ir.Conv2dGradInput)
	set(precise(convGradWeight), ir.Conv2dGradWeight)
	set(maxPool, ir.MaxPool2d)
	set(maxPoolGrad, ir.MaxPool2dGrad)
	set(avgPool, ir.AvgPool2d)
	set(avgPoolGrad, ir.AvgPool2dGrad)
	set(resample, ir.Resample)
	set(resampleGrad, ir.ResampleGrad)
}

func matMul(c *call) ([]Array, error) {
	x, y := &c.in[0], &c.in[1]
	m, k, n := x.dim(-2), x.dim(-1), y.dim(-1)
	size := c.out[0].Size()
	if integral(x.Type.DType) {
		v := make([]int64, size)
		for i := range v {
			b, r, col := i/n/m, i/n%m, i%n
			for l := range k {
				v[i] += x.int((b*m+r)*k+l) * y.int((b*k+l)*n+col)
			}
		}
		return c.ints(v)
	}
	v := make([]float64, size)
	for i := range v {
		b, r, col := i/n/m, i/n%m, i%n
		for l := range k {
			v[i] += x.Data[(b*m+r)*k+l] * y.Data[(b*k+l)*n+col]
		}
	}
	return c.one(v)
}

var activations = [...]func(float64) float64{
	ir.NoAct: func(x float64) float64 { return x }, ir.ActReLU: relu, ir.ActGELU: gelu, ir.ActGELUTanh: geluTanh, ir.ActSiLU: silu,
}

var slopes = [...]func(x, g float64) float64{
	ir.ActReLU: reluGrad, ir.ActGELU: geluGrad, ir.ActGELUTanh: geluTanhGrad, ir.ActSiLU: siluGrad,
}

func linear(c *call) ([]Array, error) {
	x, w := c.in[0].Data, c.in[1].Data
	n, k := c.in[1].dim(0), c.in[1].dim(1)
	v := make([]float64, c.out[0].Size())
	for i := range v {
		r, col := i/n, i%n
		for l := range k {
			v[i] += x[r*k+l] * w[col*k+l]
		}
		if len(c.in) == 3 {
			v[i] += c.in[2].Data[col]
		}
	}
	y := make([]float64, len(v))
	for i := range v {
		y[i] = activations[c.op.Attr.Act](v[i])
	}
	return c.results([][]float64{y, v}[:len(c.out)]...)
}

func biasGrad(c *call) ([]Array, error) {
	d, n := append([]float64(nil), c.in[0].Data...), c.in[0].dim(1)
	sums := make([]total, n)
	for i := range d {
		if len(c.in) == 2 {
			d[i] = slopes[c.op.Attr.Act](c.in[1].Data[i], d[i])
		}
		sums[i%n].add(d[i])
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = sums[i].value()
	}
	return c.results([][]float64{v, d}[:len(c.out)]...)
}

// meet calls f with the places in x, w and y of every product of a convolution.
func (c *call) meet(x, w, y *ir.Type, f func(i, j, o int)) {
	a := c.op.Attr.Conv()
	perGroup := w.Dim(0) / a.Groups
	each(y.Shape(), func(at []int) {
		n, oc, r, col := at[0], at[1], at[2], at[3]
		o := place(y.Shape(), at)
		each(w.Shape()[1:], func(k []int) {
			h, v := r*a.StrideH-a.PadH+k[1]*a.DilationH, col*a.StrideW-a.PadW+k[2]*a.DilationW
			if h < 0 || h >= x.Dim(2) || v < 0 || v >= x.Dim(3) {
				return
			}
			ic := oc/perGroup*w.Dim(1) + k[0]
			i := ((n*x.Dim(1)+ic)*x.Dim(2)+h)*x.Dim(3) + v
			f(i, oc*w.Dim(1)*w.Dim(2)*w.Dim(3)+place(w.Shape()[1:], k), o)
		})
	})
}

func conv(c *call) ([]Array, error) {
	y := c.out[0]
	v := make([]float64, y.Size())
	if len(c.in) == 3 {
		plane := y.Dim(2) * y.Dim(3)
		for i := range v {
			v[i] = c.in[2].Data[i/plane%y.Dim(1)]
		}
	}
	x, w := c.in[0].Data, c.in[1].Data
	c.meet(c.in[0].Type, c.in[1].Type, y, func(i, j, o int) { v[o] += x[i] * w[j] })
	return c.one(v)
}

func convGradInput(c *call) ([]Array, error) {
	v := make([]float64, c.out[0].Size())
	g, w := c.in[0].Data, c.in[1].Data
	c.meet(c.out[0], c.in[1].Type, c.in[0].Type, func(i, j, o int) { v[i] += g[o] * w[j] })
	return c.one(v)
}

func convGradWeight(c *call) ([]Array, error) {
	v := make([]float64, c.out[0].Size())
	g, x := c.in[0].Data, c.in[1].Data
	c.meet(c.in[1].Type, c.out[0], c.in[0].Type, func(i, j, o int) { v[j] += g[o] * x[i] })
	return c.one(v)
}

// windows calls f with every place of y and the places of x in its window: first, as counted in x, and within the plane.
func (c *call) windows(x, y *ir.Type, f func(o, i, inPlane int)) {
	p := c.op.Attr.Pool()
	height, width := x.Dim(2), x.Dim(3)
	each(y.Shape(), func(at []int) {
		plane := at[0]*x.Dim(1) + at[1]
		for k := range p.KernelH * p.KernelW {
			h, v := at[2]*p.StrideH-p.PadH+k/p.KernelW, at[3]*p.StrideW-p.PadW+k%p.KernelW
			if h >= 0 && h < height && v >= 0 && v < width {
				f(place(y.Shape(), at), plane*height*width+h*width+v, h*width+v)
			}
		}
	})
}

// maxPool keeps the first of equals and, like PyTorch, the last NaN.
func maxPool(c *call) ([]Array, error) {
	y := make([]float64, c.out[0].Size())
	places := make([]int64, len(y))
	for o := range places {
		y[o], places[o] = math.NaN(), -1
	}
	x := c.in[0].Data
	c.windows(c.in[0].Type, c.out[0], func(o, i, in int) {
		if v := x[i]; places[o] < 0 || v > y[o] || v != v {
			y[o], places[o] = v, int64(in)
		}
	})
	return []Array{Floats(c.out[0], y...), Ints(c.out[1], places...)}, nil
}

func maxPoolGrad(c *call) ([]Array, error) {
	x, y := c.out[0], c.in[0].Type
	in, out := x.Dim(2)*x.Dim(3), y.Dim(2)*y.Dim(3)
	v := make([]float64, x.Size())
	for o, g := range c.in[0].Data {
		at := c.in[1].int(o)
		if at < 0 || at >= int64(in) {
			return nil, c.outside(at, in)
		}
		v[o/out*in+int(at)] += g
	}
	return c.one(v)
}

func (c *call) window() float64 {
	p := c.op.Attr.Pool()
	return float64(p.KernelH * p.KernelW)
}

func avgPool(c *call) ([]Array, error) {
	v := make([]float64, c.out[0].Size())
	x := c.in[0].Data
	c.windows(c.in[0].Type, c.out[0], func(o, i, _ int) { v[o] += x[i] / c.window() })
	return c.one(v)
}

func avgPoolGrad(c *call) ([]Array, error) {
	v := make([]float64, c.out[0].Size())
	g := c.in[0].Data
	c.windows(c.out[0], c.in[0].Type, func(o, i, _ int) { v[i] += g[o] / c.window() })
	return c.one(v)
}

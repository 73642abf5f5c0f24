package ref

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func resample(c *call) ([]Array, error) {
	v, x := make([]float64, c.out[0].Size()), c.in[0].Data
	Resampled(c.op.Attr.Resampling(), c.in[0].Type, func(o, i int, w float64) { v[o] += w * x[i] })
	return c.one(v)
}

func resampleGrad(c *call) ([]Array, error) {
	v, g := make([]float64, c.out[0].Size()), c.in[0].Data
	Resampled(c.op.Attr.Resampling(), c.out[0], func(o, i int, w float64) { v[i] += w * g[o] })
	return c.one(v)
}

// Resampled calls f with every result of x, each element that it is made of, and the weight of this one.
func Resampled(r ir.Resampling, x *ir.Type, f func(o, i int, w float64)) {
	n := x.Dim(r.Axis)
	inner := 1
	for _, d := range x.Shape()[r.Axis+1:] {
		inner *= d
	}
	for o := range r.Size {
		at, weights := elementsOf(r, n, o, x.DType == dtype.F64)
		for k, w := range weights {
			i := min(max(at+k, 0), n-1)
			for rest := range x.Size() / n {
				outer, l := rest/inner, rest%inner
				f((outer*r.Size+o)*inner+l, (outer*n+i)*inner+l, w)
			}
		}
	}
}

// elementsOf is the first element, of n, that result o is made of, and the weights of this one and the ones after it; outside of
// the ends, of the outermost.
func elementsOf(r ir.Resampling, n, o int, double bool) (first int, w []float64) {
	rounded := func(v float64) float64 {
		if double {
			return v
		}
		return float64(float32(v))
	}
	center := rounded((float64(o) + 0.5) * rounded(r.Step))
	at := rounded(center - 0.5)
	if r.Corners {
		at = rounded(float64(o) * rounded(r.Step))
	}
	switch r.Curve {
	case ir.Nearest:
		return int(math.Floor(float64(float32(o) * float32(r.Step)))), []float64{1}
	case ir.NearestMiddle:
		return int(math.Floor(float64((float32(o) + 0.5) * float32(r.Step)))), []float64{1}
	case ir.Lines:
		at = min(max(at, 0), float64(n-1))
		t := at - math.Floor(at)
		return int(at), []float64{1 - t, t}
	case ir.Cubics:
		t := at - math.Floor(at)
		for k := range 4 {
			w = append(w, keysCurve(math.Abs(t+1-float64(k)), -0.75))
		}
		return int(math.Floor(at)) - 1, w
	}
	return windowOf(r, center, n)
}

// windowOf is the elements that a result around a place covers.
func windowOf(r ir.Resampling, center float64, n int) (first int, w []float64) {
	reach, wide := r.Reach()
	first = int(max(center-reach+0.5, 0))
	sum := 0.0
	for j := first; j < min(int(center+reach+0.5), n); j++ {
		d := math.Abs((float64(j) - center + 0.5) / wide)
		v := max(1-d, 0)
		if r.Curve == ir.CubicWindows {
			v = keysCurve(d, -0.5)
		}
		w = append(w, v)
		sum += v
	}
	for k := range w {
		w[k] /= sum
	}
	return first, w
}

// keysCurve is Keys' kernel at a distance.
func keysCurve(d, a float64) float64 {
	switch {
	case d < 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return (d - 1) * (d - 2) * (d - 2) * a
	}
	return 0
}

package cpu

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// poolCase is planes of h×w.
type poolCase struct {
	n, c, h, w int
	ir.Pool
}

var poolCases = []poolCase{
	{1, 1, 1, 1, ir.Pool{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1}},
	{2, 3, 8, 6, ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}},
	{3, 5, 7, 9, ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}},
	{0, 3, 4, 4, ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}},
	{2, 2, 11, 7, ir.Pool{KernelH: 3, KernelW: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1}},
	{1, 2, 6, 13, ir.Pool{KernelH: 5, KernelW: 2, StrideH: 1, StrideW: 3, PadH: 2, PadW: 1}},
	{2, 2, 1, 2, ir.Pool{KernelH: 2, KernelW: 2, StrideH: 1, StrideW: 2, PadH: 1, PadW: 1}},
}

// windows calls f for each result with the places of its window in the input.
func (c poolCase) windows(f func(y int, in []int)) {
	oh, ow := (c.h+2*c.PadH-c.KernelH)/c.StrideH+1, (c.w+2*c.PadW-c.KernelW)/c.StrideW+1
	for y := range c.n * c.c * oh * ow {
		var in []int
		for i := range c.KernelH * c.KernelW {
			h, w := y/ow%oh*c.StrideH-c.PadH+i/c.KernelW, y%ow*c.StrideW-c.PadW+i%c.KernelW
			if h >= 0 && h < c.h && w >= 0 && w < c.w {
				in = append(in, (y/(oh*ow)*c.h+h)*c.w+w)
			}
		}
		f(y, in)
	}
}

func TestPool(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range floatTypes {
		for _, c := range poolCases {
			name, a := fmt.Sprint(c), c.Attr()
			x := whole(t, r, 7, ir.Dense(dt, c.n, c.c, c.h, c.w)) // with ties
			for i := range x.v {
				switch r.IntN(20) {
				case 0:
					x.v[i] = math.NaN()
				case 1:
					x.v[i] = math.Inf(-1)
				}
			}
			got := evaluate(t, ir.MaxPool2d, a, ir.Params{}, x)
			g := normals(t, r, 1, got[0].t)
			best, place := make([]float64, len(g.v)), make([]float64, len(g.v))
			dmax, davg := make([]float64, len(x.v)), make([]float64, len(x.v))
			c.windows(func(y int, in []int) {
				at := in[0]
				for _, i := range in {
					if x.v[i] > x.v[at] || math.IsNaN(x.v[i]) {
						at = i
					}
					davg[i] += g.v[y] / float64(c.KernelH*c.KernelW)
				}
				best[y], place[y] = x.v[at], float64(at%(c.h*c.w))
				dmax[at] += g.v[y]
			})
			near(t, name, got[0], best, 0, 0, 0)
			testutil.Close(t, got[1].v, place, 0, 0)
			a.Out = x.t
			near(t, name+" dmax", evaluate(t, ir.MaxPool2dGrad, a, ir.Params{}, g, got[1])[0], dmax, 1e-6, 1, 0.51)
			near(t, name+" davg", evaluate(t, ir.AvgPool2dGrad, a, ir.Params{}, g)[0], davg, 1e-6, 1, 0.51)
		}
	}
}

func TestAvgPool(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range floatTypes {
		for _, c := range poolCases {
			x := normals(t, r, 1, ir.Dense(dt, c.n, c.c, c.h, c.w))
			got := evaluate(t, ir.AvgPool2d, c.Attr(), ir.Params{}, x)[0]
			want := make([]float64, len(got.v))
			c.windows(func(y int, in []int) {
				for _, i := range in {
					want[y] += x.v[i] / float64(c.KernelH*c.KernelW)
				}
			})
			near(t, fmt.Sprint(c), got, want, 1e-6, 1, 0.51)
		}
	}
}

func TestMaxPoolRefuses(t *testing.T) {
	a := ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}.Attr()
	a.Out = ir.Dense(dtype.F32, 1, 1, 2, 4)
	g := ir.Dense(dtype.F32, 1, 1, 1, 2)
	_, err := launch(t, ir.New(ir.MaxPool2dGrad, a, g, g.As(dtype.I64)), ir.Params{}, []float64{1, 2}, []float64{7, 8})
	if err == nil || !strings.Contains(err.Error(), "place 8 of element 1") {
		t.Errorf("a place outside of the plane: %v", err)
	}
}

func BenchmarkPool(b *testing.B) {
	x, y := ir.Dense(dtype.F32, 64, 16, 28, 28), ir.Dense(dtype.F32, 64, 16, 14, 14)
	a := ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}.Attr()
	b.Run("max", func(b *testing.B) { rate(b, "GB/s", 4*x.Size()+12*y.Size(), ir.MaxPool2d, a, ir.Params{}, x) })
	a.Out = x
	b.Run("max-grad", func(b *testing.B) {
		rate(b, "GB/s", 4*x.Size()+12*y.Size(), ir.MaxPool2dGrad, a, ir.Params{}, y, y.As(dtype.I64))
	})
}

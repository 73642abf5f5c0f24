package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// refLogSoftmax is over rows of d.
func refLogSoftmax(x []float64, d int) []float64 {
	y := make([]float64, len(x))
	for i := 0; i < len(x); i += d {
		m, s := math.Inf(-1), 0.
		for _, v := range x[i : i+d] {
			m = max(m, v)
		}
		for _, v := range x[i : i+d] {
			s += math.Exp(v - m)
		}
		for j, v := range x[i : i+d] {
			y[i+j] = v - m - math.Log(s)
		}
	}
	return y
}

func refSoftmax(x []float64, d int) []float64 {
	y := refLogSoftmax(x, d)
	for i, v := range y {
		y[i] = math.Exp(v)
	}
	return y
}

func TestSoftmax(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range floatTypes {
		for _, s := range [][]int{{1, 1}, {0, 5}, {5, 0}, {7}, {2, 3, 17}, {37, 61}, {3, 1031}} {
			shape := ir.Dense(dt, s...)
			d := s[len(s)-1]
			x, g := normals(t, r, 4, shape), normals(t, r, 1, shape)
			for _, f := range []struct {
				code, grad ir.Code
				ref        func([]float64, int) []float64
				size       float64
			}{{ir.Softmax, ir.SoftmaxGrad, refSoftmax, 0.1}, {ir.LogSoftmax, ir.LogSoftmaxGrad, refLogSoftmax, 10}} {
				if d == 0 {
					evaluate(t, f.code, ir.Attr{}, ir.Params{}, x)
					continue
				}
				name := fmt.Sprint(f.code, s)
				want := f.ref(x.v, d)
				near(t, name, evaluate(t, f.code, ir.Attr{}, ir.Params{}, x)[0], want, 3e-6, f.size, 0.51)
				if len(x.v) > 500 {
					continue
				}
				y := of(t, shape, want)
				dx := slope(func(x []float64) []float64 { return f.ref(x, d) }, x.v, g.v)
				near(t, name+" grad", evaluate(t, f.grad, ir.Attr{}, ir.Params{}, y, g)[0], dx, 3e-4, 1, 8)
			}
		}
	}
}

// As in PyTorch, a row without any mass is NaN, -∞ beside numbers is 0, and NaN spoils its row only.
func TestSoftmaxSpecial(t *testing.T) {
	low, nan := math.Inf(-1), math.NaN()
	for _, dt := range floatTypes {
		x := value{ir.Dense(dt, 3, 5), []float64{low, low, low, low, low, 1, low, 1, low, low, 0, nan, 0, 0, 0}}
		got := evaluate(t, ir.Softmax, ir.Attr{}, ir.Params{}, x)[0]
		near(t, "softmax", got, []float64{nan, nan, nan, nan, nan, .5, 0, .5, 0, 0, nan, nan, nan, nan, nan}, 0, 0, 0)
	}
}

func BenchmarkSoftmax(b *testing.B) {
	x := ir.Dense(dtype.F32, 4096, 256)
	b.Run("y", func(b *testing.B) { rate(b, "GB/s", 8*x.Size(), ir.Softmax, ir.Attr{}, ir.Params{}, x) })
	b.Run("dx", func(b *testing.B) { rate(b, "GB/s", 12*x.Size(), ir.SoftmaxGrad, ir.Attr{}, ir.Params{}, x, x) })
}

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// refMatMul multiplies count matrices.
func refMatMul(a, b []float64, count, m, n, k int) []float64 {
	c := make([]float64, count*m*n)
	for i := range c {
		p, r, col := i/(m*n), i/n%m, i%n
		for l := range k {
			c[i] += a[(p*m+r)*k+l] * b[(p*k+l)*n+col]
		}
	}
	return c
}

// matMulShapes are batch, m, n, k.
var matMulShapes = [][4]int{{1, 1, 1, 1}, {3, 7, 5, 11}, {0, 3, 4, 5}, {2, 0, 4, 5}, {2, 3, 4, 0}, {5, 17, 31, 33}, {1, 64, 64, 129}, {2, 1, 100, 300}, {4, 65, 3, 1}, {1, 200, 150, 90}}

func TestMatMul(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I64, dtype.I32, dtype.U8} {
		for _, s := range matMulShapes {
			count, m, n, k := s[0], s[1], s[2], s[3]
			for range 2 {
				a, b := matMulOperand(t, r, dt, count, m, k), matMulOperand(t, r, dt, count, k, n)
				got := evaluate(t, ir.MatMul, ir.Attr{}, ir.Params{}, a, b)[0]
				want := refMatMul(a.v, b.v, count, m, n, k)
				if dt == dtype.U8 {
					for i, v := range want {
						want[i] = math.Mod(v, 256)
					}
				}
				// Expanded operands make terms of one sign, whose k roundings add up to k·2⁻²⁵ of the result.
				tol := max(1e-6, float64(k)*0x1p-25)
				near(t, fmt.Sprint(s, a.t, b.t), got, want, tol, math.Sqrt(float64(k))*4, 0.51)
			}
		}
	}
}

func matMulOperand(t *testing.T, r *rand.Rand, dt dtype.DType, shape ...int) value {
	v := randomView(r, dt, shape)
	if dt.IsInt() {
		return whole(t, r, 20, v)
	}
	return normals(t, r, 1, v)
}

// A weight that is shared by the batch must give what separate products give.
func TestMatMulFolds(t *testing.T) {
	r := testutil.Rand(t)
	for _, m := range []int{1, 6} {
		a := normals(t, r, 1, ir.Dense(dtype.F32, 3, 4, m, 20))
		b := normals(t, r, 1, ir.Strided(dtype.F32, []int{3, 4, 20, 9}, []int{0, 0, 1, 20}))
		got := evaluate(t, ir.MatMul, ir.Attr{}, ir.Params{}, a, b)[0]
		near(t, "shared", got, refMatMul(a.v, b.v, 12, m, 9, 20), 1e-6, 20, 0)
	}
}

func activate(act ir.Act, x float64) float64 {
	switch act {
	case ir.ActReLU:
		return max(x, 0)
	case ir.ActGELU:
		return x / 2 * math.Erfc(-x/math.Sqrt2)
	case ir.ActGELUTanh:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x
}

func TestLinear(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range floatTypes {
		for act := ir.NoAct; act <= ir.ActGELUTanh; act++ {
			for _, s := range [][3]int{{1, 1, 1}, {0, 3, 4}, {5, 0, 3}, {3, 5, 0}, {37, 45, 19}, {130, 33, 70}} {
				rows, n, k := s[0], s[1], s[2]
				x, w, b := normals(t, r, 1, ir.Dense(dt, 1, rows, k)), normals(t, r, 0.5, ir.Dense(dt, n, k)), normals(t, r, 1, ir.Dense(dt, n))
				want := make([]float64, rows*n)
				for i := range want {
					want[i] = b.v[i%n]
					for l := range k {
						want[i] += x.v[i/n*k+l] * w.v[i%n*k+l]
					}
					want[i] = activate(act, want[i])
				}
				near(t, fmt.Sprint(act, s), evaluate(t, ir.Linear, ir.Attr{Act: act}, ir.Params{}, x, w, b)[0], want, 2e-6, 8, 0.51)
				if act == ir.NoAct {
					for i := range want {
						want[i] -= b.v[i%n]
					}
					near(t, "no bias", evaluate(t, ir.Linear, ir.Attr{}, ir.Params{}, x, w)[0], want, 2e-6, 8, 0.51)
				}
			}
		}
	}
}

// rate runs a benchmark of an op and reports what it does in a second, in units of a billion.
func rate(b *testing.B, unit string, work int, code ir.Code, a ir.Attr, p ir.Params, in ...*ir.Type) {
	bench(b, ir.New(code, a, in...), p)
	b.ReportMetric(float64(work)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), unit)
}

func BenchmarkLinear(b *testing.B) {
	for _, s := range [][3]int{{2048, 128, 512}, {128, 784, 128}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			rate(b, "GFLOP/s", 2*s[0]*s[1]*s[2], ir.Linear, ir.Attr{}, ir.Params{}, ir.Dense(dtype.F32, s[0], s[1]), ir.Dense(dtype.F32, s[2], s[1]), ir.Dense(dtype.F32, s[2]))
		})
	}
}

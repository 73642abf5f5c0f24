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

const normEps = 1e-5

// refNorm normalizes rows of d, by mean and deviation or by the root of the mean square; w and b may be nil.
func refNorm(x, w, b []float64, d int, centred bool) (y, mean, rstd []float64) {
	y = make([]float64, len(x))
	for i := 0; i < len(x); i += d {
		var m, v float64
		for _, u := range x[i : i+d] {
			m += u / float64(d)
		}
		if !centred {
			m = 0
		}
		for _, u := range x[i : i+d] {
			v += (u - m) * (u - m) / float64(d)
		}
		s := 1 / math.Sqrt(v+normEps)
		mean, rstd = append(mean, m), append(rstd, s)
		for j, u := range x[i : i+d] {
			y[i+j] = (u - m) * s
			if w != nil {
				y[i+j] *= w[j]
			}
			if b != nil {
				y[i+j] += b[j]
			}
		}
	}
	return y, mean, rstd
}

// spread are numbers around 2 and -2 in turn along an axis, so that a row has a deviation of at least 0.9: where it has none,
// the rounding of the mean and the error of finite differences are multiplied by up to 1/√normEps.
func spread(tb testing.TB, r *rand.Rand, t *ir.Type, turn func(i int) int) value {
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = float64(2-4*(turn(i)%2)) + 2*r.Float64() - 1
	}
	return of(tb, t, v)
}

func TestNorm(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range floatTypes {
		for _, centred := range []bool{true, false} {
			code, grad := ir.RMSNorm, ir.RMSNormGrad
			if centred {
				code, grad = ir.LayerNorm, ir.LayerNormGrad
			}
			for _, s := range [][2]int{{1, 1}, {0, 3}, {5, 2}, {7, 31}, {40, 17}, {130, 5}} {
				n, d := s[0], s[1]
				x, g := spread(t, r, ir.Dense(dt, n, d), func(i int) int { return i % d }), normals(t, r, 1, ir.Dense(dt, n, d))
				w, b := normals(t, r, 1, ir.Dense(dt, d)), normals(t, r, 1, ir.Dense(dt, d))
				for affine := range 3 {
					in, wv, bv := []value{x}, []float64(nil), []float64(nil)
					if affine > 0 {
						in, wv = append(in, w), w.v
					}
					if affine > 1 && centred {
						in, bv = append(in, b), b.v
					}
					name := fmt.Sprint(code, s, affine)
					y, mean, rstd := refNorm(x.v, wv, bv, d, centred)
					got := evaluate(t, code, ir.Attr{}, ir.Scalars(normEps), in...)
					near(t, name, got[0], y, 2e-6, 4, 0.51)
					near(t, name+" rstd", got[len(got)-1], rstd, 2e-6, 1, 0)
					if centred {
						near(t, name+" mean", got[1], mean, 2e-6, 1, 0)
					}
					if affine == 2 || d == 1 {
						continue
					}
					in = append(append([]value{g, x}, got[1:]...), in[1:]...)
					res := evaluate(t, grad, ir.Attr{}, ir.Params{}, in...)
					dx := slope(func(x []float64) []float64 { y, _, _ := refNorm(x, wv, nil, d, centred); return y }, x.v, g.v)
					near(t, name+" dx", res[0], dx, 1e-3, 10, 0.51)
					dw, db := make([]float64, d), make([]float64, d)
					plain, _, _ := refNorm(x.v, nil, nil, d, centred)
					for i, v := range plain {
						dw[i%d] += g.v[i] * v
						db[i%d] += g.v[i]
					}
					near(t, name+" dw", res[1], dw, 2e-6, 20, 0.51)
					if centred {
						near(t, name+" db", res[2], db, 2e-6, 20, 0.51)
					}
				}
			}
		}
	}
}

// A large common offset must not spoil the variance.
func TestLayerNormOffset(t *testing.T) {
	r := testutil.Rand(t)
	x := normals(t, r, 1, ir.Dense(dtype.F32, 3, 1000))
	for i := range x.v {
		x.v[i] += 10000
	}
	x = of(t, x.t, x.v)
	_, _, rstd := refNorm(x.v, nil, nil, 1000, true)
	near(t, "rstd", evaluate(t, ir.LayerNorm, ir.Attr{}, ir.Scalars(normEps), x)[2], rstd, 1e-6, 0, 0)
}

// refBatchNorm normalizes channels of x[n,c,s] by the moments of the batch.
func refBatchNorm(x, w, b []float64, n, c, s int) (y, mean, variance []float64) {
	y, mean, variance = make([]float64, len(x)), make([]float64, c), make([]float64, c)
	for i, v := range x {
		mean[i/s%c] += v / float64(n*s)
	}
	for i, v := range x {
		d := v - mean[i/s%c]
		variance[i/s%c] += d * d / float64(n*s)
	}
	for i, v := range x {
		k := i / s % c
		y[i] = (v-mean[k])/math.Sqrt(variance[k]+normEps)*w[k] + b[k]
	}
	return y, mean, variance
}

func TestBatchNorm(t *testing.T) {
	r := testutil.Rand(t)
	p := ir.Scalars(normEps)
	for _, dt := range floatTypes {
		for _, s := range [][3]int{{3, 1, 1}, {1, 2, 5}, {4, 3, 7}, {5, 7, 13}, {2, 0, 3}} {
			n, c := s[0], s[1]
			wide := ir.Dense(ir.Wide(dt), c)
			// Along the batch and the places of a channel.
			x := spread(t, r, ir.Dense(dt, s[:]...), func(i int) int { return i/(c*s[2]) + i%s[2] })
			g := normals(t, r, 1, ir.Dense(dt, s[:]...))
			w, b := normals(t, r, 1, wide), normals(t, r, 1, wide)
			name := fmt.Sprint(s)
			y, mean, variance := refBatchNorm(x.v, w.v, b.v, n, c, s[2])
			got := evaluate(t, ir.BatchNorm, ir.Attr{}, p, x, w, b)
			near(t, name, got[0], y, 2e-6, 4, 0.51)
			near(t, name+" mean", got[1], mean, 2e-6, 1, 0)
			near(t, name+" var", got[2], variance, 2e-6, 1, 0)
			near(t, name+" eval", evaluate(t, ir.BatchNormEval, ir.Attr{}, p, x, got[1], got[2], w, b)[0], y, 2e-6, 4, 0.51)
			res := evaluate(t, ir.BatchNormGrad, ir.Attr{}, p, g, x, got[1], got[2], w)
			of := func(x, w []float64) []float64 { y, _, _ := refBatchNorm(x, w, b.v, n, c, s[2]); return y }
			near(t, name+" dx", res[0], slope(func(x []float64) []float64 { return of(x, w.v) }, x.v, g.v), 1e-3, 2, 0.51)
			near(t, name+" dw", res[1], slope(func(w []float64) []float64 { return of(x.v, w) }, w.v, g.v), 1e-4, 10, 0)
			db := make([]float64, c)
			for i, v := range g.v {
				db[i/s[2]%c] += v
			}
			near(t, name+" db", res[2], db, 2e-6, 10, 0)
		}
	}
}

func BenchmarkNorm(b *testing.B) {
	x, r, w := ir.Dense(dtype.F32, 2048, 128), ir.Dense(dtype.F32, 2048), ir.Dense(dtype.F32, 128)
	p := ir.Scalars(normEps)
	b.Run("layer", func(b *testing.B) { rate(b, "GB/s", 8*x.Size(), ir.LayerNorm, ir.Attr{}, p, x, w, w) })
	b.Run("layer-grad", func(b *testing.B) {
		rate(b, "GB/s", 12*x.Size(), ir.LayerNormGrad, ir.Attr{}, ir.Params{}, x, x, r, r, w)
	})
	x, w = ir.Dense(dtype.F32, 64, 16, 784), ir.Dense(dtype.F32, 16)
	b.Run("batch", func(b *testing.B) { rate(b, "GB/s", 8*x.Size(), ir.BatchNorm, ir.Attr{}, p, x, w, w) })
	b.Run("batch-grad", func(b *testing.B) { rate(b, "GB/s", 12*x.Size(), ir.BatchNormGrad, ir.Attr{}, p, x, x, w, w, w) })
}

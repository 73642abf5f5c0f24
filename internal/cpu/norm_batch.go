package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareBatchNorm[float32], prepareBatchNorm[float64]), ir.BatchNorm)
	offer(forFloats(prepareBatchNormGrad[float32], prepareBatchNormGrad[float64]), ir.BatchNormGrad)
	offer(forFloats(prepareBatchNormEval[float32], prepareBatchNormEval[float64]), ir.BatchNormEval)
}

// channels is x[n,c,s] as the rows of each channel.
type channels struct{ n, c, s int }

func channelsOf(t *ir.Type) channels { return channels{t.Dim(0), t.Dim(1), t.Dim(2)} }

// row cuts row i of channel c out of x.
func row[T any](g *channels, x []T, i, c int) []T { return x[(i*g.c+c)*g.s:][:g.s] }

// count is the number of values of a channel.
func (g *channels) count() float64 { return float64(g.n) * float64(g.s) }

// batchArgs are of one launch: per channel mean, variance, weight and bias, and their gradients.
type batchArgs[T any] struct {
	y, x, g, mean, variance, w, b, dw, db []T
	eps                                   float64
}

func prepareBatchNorm[T kernels.Float](k *device.Kernel) (run, error) {
	x := k.Op.In(0)
	g := channelsOf(x)
	each := newLoop(func(a *batchArgs[T], lo, hi int) {
		for c := lo; c < hi; c++ {
			m, v := moments(&g, a.x, c)
			a.mean[c], a.variance[c] = T(m), T(v)
			normalize(&g, a, c, m, v)
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		each.run(g.c, grainOf(3*g.n*g.s), batchArgs[T]{y: elems[T](args[0], x), mean: values[T](args[1], g.c), variance: values[T](args[2], g.c),
			x: elems[T](args[3], x), w: values[T](args[4], g.c), b: values[T](args[5], g.c), eps: scalar(p, 0)})
		return nil
	}, nil
}

// moments is the mean and the biased variance of a channel, in two passes.
func moments[T kernels.Float](g *channels, x []T, c int) (mean, variance float64) {
	for i := range g.n {
		mean += sumOf(row(g, x, i, c))
	}
	mean /= g.count()
	for i := range g.n {
		variance += deviation(row(g, x, i, c), mean)
	}
	return mean, variance / g.count()
}

// normalize writes (x-m)/√(v+eps)·w + b for a channel.
func normalize[T kernels.Float](g *channels, a *batchArgs[T], c int, m, v float64) {
	mean, scale, b := T(m), T(float64(a.w[c])/math.Sqrt(v+a.eps)), a.b[c]
	for i := range g.n {
		rescale(row(g, a.y, i, c), row(g, a.x, i, c), mean, scale, b)
	}
}

func prepareBatchNormEval[T kernels.Float](k *device.Kernel) (run, error) {
	x := k.Op.In(0)
	g := channelsOf(x)
	each := newLoop(func(a *batchArgs[T], lo, hi int) {
		for c := lo; c < hi; c++ {
			normalize(&g, a, c, float64(a.mean[c]), float64(a.variance[c]))
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		each.run(g.c, grainOf(g.n*g.s), batchArgs[T]{y: elems[T](args[0], x), x: elems[T](args[1], x), mean: values[T](args[2], g.c),
			variance: values[T](args[3], g.c), w: values[T](args[4], g.c), b: values[T](args[5], g.c), eps: scalar(p, 0)})
		return nil
	}, nil
}

// prepareBatchNormGrad computes, with x̂ = (x-mean)·rstd, db = Σ g, dw = Σ g·x̂ and dx = w·rstd·(g - (db + x̂·dw)/count).
func prepareBatchNormGrad[T kernels.Float](k *device.Kernel) (run, error) {
	x := k.Op.In(1)
	g := channelsOf(x)
	each := newLoop(func(a *batchArgs[T], lo, hi int) {
		for c := lo; c < hi; c++ {
			batchGrad(&g, a, c)
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		each.run(g.c, grainOf(4*g.n*g.s), batchArgs[T]{y: elems[T](args[0], x), dw: values[T](args[1], g.c), db: values[T](args[2], g.c),
			g: elems[T](args[3], x), x: elems[T](args[4], x), mean: values[T](args[5], g.c), variance: values[T](args[6], g.c),
			w: values[T](args[7], g.c), eps: scalar(p, 0)})
		return nil
	}, nil
}

func batchGrad[T kernels.Float](g *channels, a *batchArgs[T], c int) {
	mean := float64(a.mean[c])
	rstd := 1 / math.Sqrt(float64(a.variance[c])+a.eps)
	var db, dw float64
	for i := range g.n {
		s, p := gradSums(row(g, a.g, i, c), row(g, a.x, i, c), mean)
		db += s
		dw += p
	}
	dw *= rstd
	a.db[c], a.dw[c] = T(db), T(dw)
	scale := float64(a.w[c]) * rstd
	p, q, r := T(scale), T(scale*rstd*dw/g.count()), T(scale*db/g.count())
	for i := range g.n {
		mix(row(g, a.y, i, c), row(g, a.g, i, c), row(g, a.x, i, c), p, q, T(mean), r)
	}
}

// gradSums is Σ g and Σ g·(x-mean).
func gradSums[T kernels.Float](g, x []T, mean float64) (s, p float64) {
	s = sumOf(g)
	return s, dotOf(g, x) - mean*s
}

package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/par"
)

func init() {
	offer(forFloats(prepareNorm[float32](true), prepareNorm[float64](true)), ir.LayerNorm)
	offer(forFloats(prepareNorm[float32](false), prepareNorm[float64](false)), ir.RMSNorm)
	offer(forFloats(prepareNormGrad[float32](true), prepareNormGrad[float64](true)), ir.LayerNormGrad)
	offer(forFloats(prepareNormGrad[float32](false), prepareNormGrad[float64](false)), ir.RMSNormGrad)
}

// normArgs are of one launch: x[r,d], a mean (not in RMSNorm) and 1/√(var+eps) per row, a weight and a bias per column,
// either of which may be nil.
type normArgs[T any] struct {
	y, x, g, mean, rstd, w, b []T
	eps                       float64
	parts, dw, db             []T
}

// prepareNorm is LayerNorm if centred, else RMSNorm. Statistics are formed in float64.
func prepareNorm[T kernels.Float](centred bool) prepare {
	return func(k *device.Kernel) (run, error) {
		x := k.Op.In(0)
		r, d := x.Dim(0), x.Dim(1)
		rows := newLoop(func(a *normArgs[T], lo, hi int) {
			for i := lo; i < hi; i++ {
				normRow(a, i, d, centred)
			}
		})
		return func(args []device.Arg, p *device.Params) error {
			a := normArgs[T]{y: elems[T](args[0], x), eps: scalar(p, 0)}
			if args = args[1:]; centred {
				a.mean, args = values[T](args[0], r), args[1:]
			}
			a.rstd, a.x = values[T](args[0], r), elems[T](args[1], x)
			if k.Op.NumIn() > 1 {
				a.w = values[T](args[2], d)
			}
			if k.Op.NumIn() > 2 {
				a.b = values[T](args[3], d)
			}
			rows.run(r, grainOf(3*d), a)
			return nil
		}, nil
	}
}

func normRow[T kernels.Float](a *normArgs[T], i, d int, centred bool) {
	x, y := a.x[i*d:][:d], a.y[i*d:][:d]
	var m, squares float64
	if centred {
		m, squares = momentsOf(x)
		a.mean[i] = T(m)
	} else {
		squares = deviation(x, 0)
	}
	rstd := T(1 / math.Sqrt(squares/float64(d)+a.eps))
	a.rstd[i] = rstd
	normalizeRow(y, x, a.w, a.b, T(m), rstd)
}

// normalizeRow stores (x-m)·s·w + b in y; w or both may be nil.
func normalizeRow[T kernels.Float](y, x, w, b []T, m, s T) {
	if w == nil {
		rescale(y, x, m, s, 0)
		return
	}
	if f, ok := any(x).([]float32); ok && b != nil {
		kernels.RowNormalize(any(y).([]float32), f, any(w).([]float32), any(b).([]float32), float32(m), float32(s))
		return
	}
	for j, v := range x {
		y[j] = (v - m) * s * w[j]
		if b != nil {
			y[j] += b[j]
		}
	}
}

// normParts is in how many ranges the rows are cut for the gradients of weight and bias; each has sums of its own.
const normParts = 32

// prepareNormGrad computes, with x̂ = (x-mean)·rstd and h = g·w, per row
// dx = rstd·(h - mean(h) - x̂·mean(h·x̂)), without mean(h) for RMSNorm, and per column dw = Σ g·x̂ and db = Σ g.
func prepareNormGrad[T kernels.Float](centred bool) prepare {
	return func(k *device.Kernel) (run, error) {
		x := k.Op.In(1)
		r, d := x.Dim(0), x.Dim(1)
		grain := max((r+normParts-1)/normParts, grainOf(8*d))
		parts, size := par.Chunks(r, grain)
		sums := newBuffers[float64](2 * d)
		rows := newLoop(func(a *normArgs[T], lo, hi int) {
			b := sums.get()
			defer sums.put(b)
			clear(*b)
			for i := lo; i < hi; i++ {
				normGradRow(a, i, d, centred, *b)
			}
			for j, v := range *b {
				a.parts[lo/size*2*d+j] = T(v)
			}
		})
		join := newLoop(func(a *normArgs[T], lo, hi int) { joinParts(a, parts, d, lo, hi) })
		k.Workspace = int64(parts) * int64(2*d) * int64(x.DType.Size())
		return func(args []device.Arg, _ *device.Params) error {
			a := normGradArgs[T](&k.Op, args, centred)
			if parts*d > 0 {
				a.parts = workspace[T](args[len(k.Out)+k.Op.NumIn()], 0, parts*2*d)
			}
			rows.run(r, grain, a)
			join.run(d, 1<<10, a)
			return nil
		}, nil
	}
}

// normGradArgs names the arguments: dx, dw and perhaps db, then g, x, perhaps mean, rstd and perhaps w.
func normGradArgs[T kernels.Float](op *ir.Op, args []device.Arg, centred bool) (a normArgs[T]) {
	x := op.In(1)
	r, d := x.Dim(0), x.Dim(1)
	stats := 1
	a.y, a.dw = elems[T](args[0], x), values[T](args[1], d)
	if centred {
		a.db, args, stats = values[T](args[2], d), args[1:], 2
	}
	a.g, a.x = elems[T](args[2], x), elems[T](args[3], x)
	if centred {
		a.mean, args = values[T](args[4], r), args[1:]
	}
	a.rstd = values[T](args[4], r)
	if op.NumIn() > 2+stats {
		a.w = values[T](args[5], d)
	}
	return a
}

// normGradRow writes dx of a row and adds to sums: db, then dw.
func normGradRow[T kernels.Float](a *normArgs[T], i, d int, centred bool, sums []float64) {
	x, g, dx := a.x[i*d:][:d], a.g[i*d:][:d], a.y[i*d:][:d]
	rstd, mean := float64(a.rstd[i]), 0.
	if centred {
		mean = float64(a.mean[i])
	}
	addRow(sums[:d], sums[d:], g, x, mean, rstd)
	h := g
	if a.w != nil {
		multiplied(dx, g, a.w)
		h = dx
	}
	h1 := sumOf(h)
	h2 := (dotOf(h, x) - mean*h1) * rstd
	if !centred {
		h1 = 0
	}
	mix(dx, h, x, T(rstd), T(rstd*rstd*h2/float64(d)), T(mean), T(rstd*h1/float64(d)))
}

// addRow adds g to db and g·(x-m)·s to dw.
func addRow[T kernels.Float](db, dw []float64, g, x []T, m, s float64) {
	if f, ok := any(x).([]float32); ok {
		kernels.RowGather(db, dw, any(g).([]float32), f, m, s)
		return
	}
	for j, v := range x {
		db[j] += float64(g[j])
		dw[j] += float64(g[j]) * ((float64(v) - m) * s)
	}
}

// joinParts adds the sums of the ranges in their order, for columns lo to hi.
func joinParts[T kernels.Float](a *normArgs[T], parts, d, lo, hi int) {
	for j := lo; j < hi; j++ {
		var db, dw float64
		for p := range parts {
			db += float64(a.parts[2*p*d+j])
			dw += float64(a.parts[(2*p+1)*d+j])
		}
		if a.dw[j] = T(dw); a.db != nil {
			a.db[j] = T(db)
		}
	}
}

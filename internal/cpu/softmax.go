package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	rows := func(code ir.Code, f32 func(y, x, g []float32), f64 func(y, x, g []float64)) {
		offer(forFloats(eachRow(f32), eachRow(f64)), code)
	}
	rows(ir.Softmax, softmaxRow, softmaxRow)
	rows(ir.LogSoftmax, logSoftmaxRow, logSoftmaxRow)
	rows(ir.SoftmaxGrad, softmaxGradRow, softmaxGradRow)
	rows(ir.LogSoftmaxGrad, logSoftmaxGradRow, logSoftmaxGradRow)
}

type rowArgs[T any] struct{ y, x, g []T }

// eachRow applies f to rows, which are the last dimension, of the result and of one or two operands of its shape.
func eachRow[T kernels.Float](f func(y, x, g []T)) prepare {
	return func(k *device.Kernel) (run, error) {
		t := k.Out[0]
		d := 1
		if t.Rank() > 0 {
			d = t.Dim(-1)
		}
		rows := newLoop(func(a *rowArgs[T], lo, hi int) {
			for i := lo * d; i < hi*d; i += d {
				var g []T
				if a.g != nil {
					g = a.g[i:][:d]
				}
				f(a.y[i:][:d], a.x[i:][:d], g)
			}
		})
		two := k.Op.NumIn() == 2
		return func(args []device.Arg, _ *device.Params) error {
			if t.Size() == 0 {
				return nil
			}
			a := rowArgs[T]{y: elems[T](args[0], t), x: elems[T](args[1], t)}
			if two {
				a.g = elems[T](args[2], t)
			}
			rows.run(t.Size()/d, grainOf(4*d), a)
			return nil
		}, nil
	}
}

// softmaxRow gives NaN for a row of -∞, as PyTorch does.
func softmaxRow[T kernels.Float](y, x, _ []T) {
	times(y, T(1/expInto(y, x, largest(x))))
}

func logSoftmaxRow[T kernels.Float](y, x, _ []T) {
	m := largest(x)
	l := T(math.Log(expInto(y, x, m)))
	rescale(y, x, m, 1, -l)
}

// softmaxGradRow is y·(g - Σ y·g).
func softmaxGradRow[T kernels.Float](dx, y, g []T) { weigh(dx, y, g, T(dotOf(y, g))) }

// logSoftmaxGradRow is g - exp(y)·Σ g.
func logSoftmaxGradRow[T kernels.Float](dx, y, g []T) {
	s := T(sumOf(g))
	expInto(dx, y, 0)
	mix(dx, g, dx, 1, s, 0, 0)
}

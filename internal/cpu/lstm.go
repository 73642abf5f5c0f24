package cpu

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Steps in float64 run the lowering.
func init() {
	wide := func(k *device.Kernel) (run, error) { return nil, unsupported(&k.Op, dtype.F64) }
	offer(forFloats(prepareLSTMStep, wide), ir.LSTMStep)
	offer(forFloats(prepareLSTMStepGrad, wide), ir.LSTMStepGrad)
}

// lstmArgs are results and operands in their order.
type lstmArgs [7][]float32

// lstmRows shares out n samples of h cells; wide has a bit for each of the arguments that has four times as many columns.
func lstmRows(k *device.Kernel, c *ir.Type, wide int, row func(r *lstmArgs)) run {
	n, h := c.Dim(0), c.Dim(1)
	rows := newLoop(func(a *lstmArgs, lo, hi int) {
		var r lstmArgs
		for i := lo; i < hi; i++ {
			for j, x := range a {
				if x != nil {
					size := h << (wide >> j & 1 * 2)
					r[j] = x[i*size:][:size]
				}
			}
			row(&r)
		}
	})
	types := append(append([]*ir.Type(nil), k.Out...), k.Op.Ins()...)
	return func(args []device.Arg, _ *device.Params) error {
		var a lstmArgs
		for i, t := range types {
			a[i] = elems[float32](args[i], t)
		}
		rows.run(n, grainOf(64*h), a)
		return nil
	}
}

func prepareLSTMStep(k *device.Kernel) (run, error) {
	return lstmRows(k, k.Op.In(2), 0b011100, func(r *lstmArgs) {
		kernels.LSTMGates(r[2], r[3], r[4])
		kernels.LSTMCell(r[0], r[1], r[2], r[5])
	}), nil
}

func prepareLSTMStepGrad(k *device.Kernel) (run, error) {
	return lstmRows(k, k.Op.In(0), 0b0010001, func(r *lstmArgs) {
		kernels.LSTMGrad(r[0], r[1], r[2], r[3], r[4], r[5], r[6])
	}), nil
}

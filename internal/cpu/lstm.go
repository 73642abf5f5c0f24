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
		rows.run(n, grainOf(32*h), a)
		return nil
	}
}

func prepareLSTMStep(k *device.Kernel) (run, error) {
	c := k.Op.In(2)
	n := c.Dim(1)
	return lstmRows(k, c, 0b011100, func(r *lstmArgs) {
		h, next, y, cell := r[0], r[1], r[2], r[5]
		i, f, g, o := y[:n], y[n:2*n], y[2*n:3*n], y[3*n:]
		kernels.Add(y, r[3], r[4])
		kernels.Sigmoid(y[:2*n], y[:2*n])
		kernels.Tanh(g, g)
		kernels.Sigmoid(o, o)
		kernels.Mul(next, f, cell)
		kernels.Mul(h, i, g)
		kernels.Add(next, next, h)
		kernels.Tanh(h, next)
		kernels.Mul(h, h, o)
	}), nil
}

func prepareLSTMStepGrad(k *device.Kernel) (run, error) {
	c := k.Op.In(0)
	n := c.Dim(1)
	space := newBuffers[float32](4 * n)
	return lstmRows(k, c, 0b0010001, func(r *lstmArgs) {
		da, dc, dh, dnext, y, cell, next := r[0], r[1], r[2], r[3], r[4], r[5], r[6]
		i, f, g, o := y[:n], y[n:2*n], y[2*n:3*n], y[3*n:]
		s := space.get()
		defer space.put(s)
		t, d, v, u := (*s)[:n], (*s)[n:2*n], (*s)[2*n:3*n], (*s)[3*n:]
		slope := func(dst, x, y, z []float32) { // x·y·z·(1-z)
			kernels.Mul(v, x, y)
			kernels.Mul(v, v, z)
			kernels.Mul(u, v, z)
			kernels.Sub(dst, v, u)
		}
		bend := func(dst, x, y, z []float32) { // x·y·(1-z²)
			kernels.Mul(v, x, y)
			kernels.Mul(u, z, z)
			kernels.Mul(u, u, v)
			kernels.Sub(dst, v, u)
		}
		kernels.Tanh(t, next)
		bend(d, dh, o, t)
		kernels.Add(d, d, dnext)
		slope(da[:n], d, g, i)
		slope(da[n:2*n], d, cell, f)
		bend(da[2*n:3*n], d, i, g)
		slope(da[3*n:], dh, t, o)
		kernels.Mul(dc, d, f)
	}), nil
}

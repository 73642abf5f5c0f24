package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	word32 := func(c ir.Code) pass[float32, float32] { return words[c].f32 }
	word64 := func(c ir.Code) pass[float64, float64] { return words[c].f64 }
	offer(forFloats(ofWords(word32, prepareLSTMStep), ofWords(word64, prepareLSTMStep)), ir.LSTMStep)
	offer(forFloats(ofWords(word32, prepareLSTMStepGrad), ofWords(word64, prepareLSTMStepGrad)), ir.LSTMStepGrad)
}

// lstmWords are what a step of an LSTM is written with, over the cells of a sample.
type lstmWords[T kernels.Float] struct{ add, sub, mul, sigmoid, tanh pass[T, T] }

func ofWords[T kernels.Float](of func(ir.Code) pass[T, T], p func(k *device.Kernel, w lstmWords[T]) run) prepare {
	return func(k *device.Kernel) (run, error) {
		return p(k, lstmWords[T]{of(ir.Add), of(ir.Sub), of(ir.Mul), of(ir.Sigmoid), of(ir.Tanh)}), nil
	}
}

// lstmArgs are results and operands in their order.
type lstmArgs[T any] [7][]T

// lstmRows shares out n samples of h cells; wide has a bit for each of the arguments that has four times as many columns.
func lstmRows[T kernels.Float](k *device.Kernel, c *ir.Type, wide int, row func(r *lstmArgs[T])) run {
	n, h := c.Dim(0), c.Dim(1)
	rows := newLoop(func(a *lstmArgs[T], lo, hi int) {
		var r lstmArgs[T]
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
		var a lstmArgs[T]
		for i, t := range types {
			a[i] = elems[T](args[i], t)
		}
		rows.run(n, grainOf(32*h), a)
		return nil
	}
}

func prepareLSTMStep[T kernels.Float](k *device.Kernel, w lstmWords[T]) run {
	c := k.Op.In(2)
	n := c.Dim(1)
	return lstmRows(k, c, 0b011100, func(r *lstmArgs[T]) {
		h, next, y, cell := r[0], r[1], r[2], r[5]
		i, f, g, o := y[:n], y[n:2*n], y[2*n:3*n], y[3*n:]
		w.add(y, r[3], r[4], 0, 0)
		w.sigmoid(y[:2*n], y[:2*n], nil, 0, 0)
		w.tanh(g, g, nil, 0, 0)
		w.sigmoid(o, o, nil, 0, 0)
		w.mul(next, f, cell, 0, 0)
		w.mul(h, i, g, 0, 0)
		w.add(next, next, h, 0, 0)
		w.tanh(h, next, nil, 0, 0)
		w.mul(h, h, o, 0, 0)
	})
}

func prepareLSTMStepGrad[T kernels.Float](k *device.Kernel, w lstmWords[T]) run {
	c := k.Op.In(0)
	n := c.Dim(1)
	space := newBuffers[T](4 * n)
	return lstmRows(k, c, 0b0010001, func(r *lstmArgs[T]) {
		da, dc, dh, dnext, y, cell, next := r[0], r[1], r[2], r[3], r[4], r[5], r[6]
		i, f, g, o := y[:n], y[n:2*n], y[2*n:3*n], y[3*n:]
		s := space.get()
		defer space.put(s)
		t, d, v, u := (*s)[:n], (*s)[n:2*n], (*s)[2*n:3*n], (*s)[3*n:]
		slope := func(dst, x, y, z []T) { // x·y·z·(1-z)
			w.mul(v, x, y, 0, 0)
			w.mul(v, v, z, 0, 0)
			w.mul(u, v, z, 0, 0)
			w.sub(dst, v, u, 0, 0)
		}
		bend := func(dst, x, y, z []T) { // x·y·(1-z²)
			w.mul(v, x, y, 0, 0)
			w.mul(u, z, z, 0, 0)
			w.mul(u, u, v, 0, 0)
			w.sub(dst, v, u, 0, 0)
		}
		w.tanh(t, next, nil, 0, 0)
		bend(d, dh, o, t)
		w.add(d, d, dnext, 0, 0)
		slope(da[:n], d, g, i)
		slope(da[n:2*n], d, cell, f)
		bend(da[2*n:3*n], d, i, g)
		slope(da[3*n:], dh, t, o)
		w.mul(dc, d, f, 0, 0)
	})
}

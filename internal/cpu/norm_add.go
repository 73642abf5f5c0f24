package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareAddNorm[float32], prepareAddNorm[float64]), ir.AddNorm)
	offer(forFloats(prepareAddNormGrad[float32], prepareAddNormGrad[float64]), ir.AddNormGrad)
}

// addRows stores x + y in dst.
func addRows[T kernels.Float](dst, x, y []T) {
	if f, ok := any(x).([]float32); ok {
		words[ir.Add].f32(any(dst).([]float32), f, any(y).([]float32), 0, 0)
		return
	}
	for i, v := range x {
		dst[i] = v + y[i]
	}
}

// addNormArgs are a norm's, of the sum of from and f where there is an f.
type addNormArgs[T any] struct {
	normArgs[T]
	from, f []T
}

func prepareAddNorm[T kernels.Float](k *device.Kernel) (run, error) {
	x := k.Op.In(0)
	r, d := x.Dim(0), x.Dim(1)
	rows := newLoop(func(a *addNormArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			if a.f != nil {
				addRows(a.x[i*d:][:d], a.from[i*d:][:d], a.f[i*d:][:d])
			}
			normRow(&a.normArgs, i, d, true)
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		outs := len(k.Out)
		a := addNormArgs[T]{normArgs: normArgs[T]{y: elems[T](args[0], x), mean: values[T](args[1], r), rstd: values[T](args[2], r),
			x: elems[T](args[outs], x), w: values[T](args[outs+1], d), b: values[T](args[outs+2], d), eps: scalar(p, 0)}}
		if outs == 4 {
			a.from, a.x, a.f = a.x, elems[T](args[3], x), elems[T](args[outs+3], x)
		}
		rows.run(r, grainOf(4*d), a)
		return nil
	}, nil
}

// prepareAddNormGrad is the norm's gradient, and a pass over its rows for what is added to them.
func prepareAddNormGrad[T kernels.Float](k *device.Kernel) (run, error) {
	x := k.Op.In(0)
	norm := device.Kernel{Op: ir.New(ir.LayerNormGrad, ir.Attr{}, k.Op.In(1), x, k.Op.In(2), k.Op.In(3), k.Op.In(4)), Out: k.Out[:3]}
	grad, err := prepareNormGrad[T](true)(&norm)
	if err != nil {
		return nil, err
	}
	k.Workspace = norm.Workspace
	ends := newLoop(func(a *[3][]T, lo, hi int) {
		dx := a[0][lo:hi]
		if a[1] != nil {
			addRows(dx, dx, a[1][lo:hi])
		}
		if a[2] != nil {
			copy(a[2][lo:hi], dx)
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		outs := len(k.Out)
		own := append(append([]device.Arg(nil), args[:3]...), args[outs+1], args[outs], args[outs+2], args[outs+3], args[outs+4])
		if norm.Workspace > 0 {
			own = append(own, args[outs+k.Op.NumIn()])
		}
		if err := grad(own, p); err != nil {
			return err
		}
		a := [3][]T{elems[T](args[0], x)}
		if k.Op.NumIn() == 6 {
			a[1] = elems[T](args[outs+5], x)
		}
		if outs == 4 {
			a[2] = elems[T](args[3], x)
		}
		if a[1] != nil || a[2] != nil {
			ends.run(x.Size(), grainCheap, a)
		}
		return nil
	}, nil
}

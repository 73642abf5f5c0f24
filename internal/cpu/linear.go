package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { offer(forFloats(precise(prepareLinear[float32]), prepareLinear[float64]), ir.Linear) }

var activations = [...]kernels.Activation{
	ir.NoAct: kernels.ActNone, ir.ActReLU: kernels.ActReLU, ir.ActGELU: kernels.ActGELU, ir.ActGELUTanh: kernels.ActGELUTanh,
	ir.ActSiLU: kernels.ActSiLU,
}

func prepareLinear[T kernels.Float](k *device.Kernel) (run, error) {
	x, w, y := k.Op.In(0), k.Op.In(1), k.Out[0]
	n, inner := w.Dim(0), w.Dim(1)
	act, biased, outs := activations[k.Op.Attr.Act], k.Op.NumIn() == 3, len(k.Out)
	return func(args []device.Arg, _ *device.Params) error {
		if y.Size() == 0 {
			return nil
		}
		p := kernels.Product[T]{M: y.Size() / n, N: n, K: inner, A: elems[T](args[outs], x), ARow: inner, ACol: 1,
			B: elems[T](args[outs+1], w), BRow: 1, BCol: inner, C: elems[T](args[0], y), CRow: n, Act: act}
		if biased {
			p.Bias = elems[T](args[outs+2], k.Op.In(2))
		}
		if outs == 2 {
			p.Before = elems[T](args[1], y)
		}
		kernels.Gemm(&p)
		return nil
	}, nil
}

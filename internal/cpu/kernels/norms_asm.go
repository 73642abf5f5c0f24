//go:build !purego && (amd64 || arm64)

package kernels

import "unsafe"

// normArgs is a Norm of float32 as assembly sees it. Distances are in bytes.
type normArgs struct {
	rows, n, stride, each  int // each: all ones where places have parameters of their own, else 0
	x, g, y, other, result unsafe.Pointer
	sum, more, m, p, q, r  unsafe.Pointer
	floor                  float32
}

// normKernels are the functions of a level.
type normKernels struct {
	add, deviations, apply, applyAdd, gradSums, gradSumsMasked, gradSumsKept, gradApply, gradApplyMasked func(*normArgs)
}

// assembly runs a loop, if there is a kernel for it.
func (a *Norm[T]) assembly(l normLoop) bool {
	f, ok := any(a).(*Norm[float32])
	if !ok || !assembly() {
		return false
	}
	args := f.args()
	norms().of(l, f)(&args)
	return true
}

func (a *Norm[T]) args() normArgs {
	p := func(x []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }
	args := normArgs{rows: a.Rows, n: a.N, stride: 4 * a.Stride, each: -1, x: p(a.X), g: p(a.G), y: p(a.Y), other: p(a.Other), result: p(a.Result),
		sum: p(a.Sum), more: p(a.More), m: p(a.M), p: p(a.P), q: p(a.Q), r: p(a.R), floor: float32(a.Floor)}
	if a.One {
		args.each = 0
	}
	return args
}

// of is the kernel of a loop, by the fields that are there.
func (k *normKernels) of(l normLoop, a *Norm[float32]) func(*normArgs) {
	switch {
	case l == normAdd:
		return k.add
	case l == normDeviate:
		return k.deviations
	case l == normForward && a.Other != nil:
		return k.applyAdd
	case l == normForward:
		return k.apply
	case l == normBackward && a.Result != nil:
		return k.gradApplyMasked
	case l == normBackward:
		return k.gradApply
	case a.Other != nil:
		return k.gradSumsKept
	case a.Result != nil:
		return k.gradSumsMasked
	}
	return k.gradSums
}

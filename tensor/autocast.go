package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// What a precision policy does with an op's floating operands, as PyTorch's CUDA lists have it. Ops not named run in
// the dtype they are given.
const (
	castLow  = 1 + iota // to the policy's dtype
	castWide            // to f32
)

var castTable = [ir.Codes]uint8{
	ir.MatMul: castLow, ir.Linear: castLow, ir.Conv2d: castLow, ir.Attention: castLow,

	ir.Exp: castWide, ir.Expm1: castWide, ir.Log: castWide, ir.Log1p: castWide, ir.Rsqrt: castWide, ir.Pow: castWide,
	ir.PowScalar: castWide, ir.Sum: castWide, ir.Prod: castWide, ir.CumSum: castWide, ir.Softmax: castWide,
	ir.LogSoftmax: castWide, ir.CrossEntropy: castWide, ir.LayerNorm: castWide, ir.RMSNorm: castWide,
}

// autocast replaces operands by casts of them in e, by e's policy. Values in f64, integers and bools stay.
func autocast(e *Env, code ir.Code, in []*Tensor) {
	to := e.policy
	switch castTable[code] {
	case 0:
		return
	case castWide:
		to = dtype.F32
	}
	for i, t := range in {
		if dt := t.DType(); dt.IsFloat() && dt != dtype.F64 && dt != to {
			in[i] = t.inside(e).Cast(to)
		}
	}
}

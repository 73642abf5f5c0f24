package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// AutoWide is t in float32 where its precision policy would compute in 16 bits, for formulas whose numbers these do not
// hold, such as losses; else t. PyTorch's autocast has a list of such functions.
func (t *Tensor) AutoWide() *Tensor {
	if p := t.Env().policy; p != dtype.Invalid && p != dtype.F32 && t.policed() {
		return t.Cast(dtype.F32)
	}
	return t
}

// lowered is t in the dtype of its precision policy, which products take.
func (t *Tensor) lowered() *Tensor {
	if p := t.env.policy; p != dtype.Invalid && t.policed() {
		c, _ := t.policyCast(t.env, p)
		return c
	}
	return t
}

// cardsWide is [Tensor.AutoWide] for formulas that PyTorch's CUDA list has, and its CPU list has not.
func (t *Tensor) cardsWide() *Tensor {
	if t.Env().cpuLists {
		return t
	}
	return t.AutoWide()
}

// mixes tells whether a norm of t with weights w has two dtypes to compute in: only PyTorch's CPU lists leave it so.
func (t *Tensor) mixes(w *Tensor) bool {
	e := t.env
	return e.cpuLists && e.policy != dtype.Invalid && e.policy != dtype.F32 && t.policed() && w.policed() && t.DType() != w.DType()
}

// inF32 is t in float32, or nil.
func (t *Tensor) inF32() *Tensor {
	if t == nil {
		return nil
	}
	return t.Cast(dtype.F32)
}

// policed tells whether precision policies speak of t's dtype: not of f64, types of storage, integers and bools.
func (t *Tensor) policed() bool {
	dt := t.DType()
	return dt.IsFloat() && !dt.IsStorage() && dt != dtype.F64
}

// autocast replaces operands by casts of them in e, by e's policy and the op's row, and tells which. Values in f64, in types
// of storage, integers and bools stay.
func autocast(e *Env, code ir.Code, in []*Tensor) (own temporaries) {
	to, row := e.policy, code.Row()
	switch row.Autocast {
	case ir.CastNone:
		return 0
	case ir.CastWideOnCards:
		if e.cpuLists {
			return 0
		}
		to = dtype.F32
	case ir.CastWide:
		to = dtype.F32
	}
	for i, t := range in {
		if t.policed() && t.DType() != to && !(row.KeepsWide(i) && t.DType() == dtype.F32) {
			c, made := t.policyCast(e, to)
			c.named, in[i] = t.parameter(), c
			if made {
				own.add(i)
			}
		}
	}
	return own
}

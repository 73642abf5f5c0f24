package eager

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// typed is an operand without values.
type typed struct{ t *ir.Type }

// Type is the operand's type.
func (v typed) Type() *ir.Type { return v.t }

// TypesOnly is a builder that infers types and computes nothing. It panics on an op that inference refuses.
type TypesOnly struct{}

// Emit implements [ir.Builder].
func (TypesOnly) Emit(code ir.Code, attr ir.Attr, _ ir.Params, in ...ir.Value) []ir.Value {
	op := ir.New(code, attr, Types(in)...)
	results, err := op.Infer()
	if err != nil {
		panic(err)
	}
	out := make([]ir.Value, len(results))
	for i, t := range results {
		out[i] = typed{t}
	}
	return out
}

// Types lists the types of values.
func Types(vs []ir.Value) []*ir.Type {
	ts := make([]*ir.Type, len(vs))
	for i, v := range vs {
		ts[i] = v.Type()
	}
	return ts
}

// Retype gives f64 operands dtype dt, or that of dt's statistics where wide says so, and drops all values.
func Retype(in []ir.Value, dt dtype.DType, wide func(i int) bool) []ir.Value {
	out := make([]ir.Value, len(in))
	for i, v := range in {
		t := v.Type()
		switch {
		case t.DType != dtype.F64:
		case wide(i):
			t = t.As(ir.Wide(dt))
		default:
			t = t.As(dt)
		}
		out[i] = typed{t}
	}
	return out
}

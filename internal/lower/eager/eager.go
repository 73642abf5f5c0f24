// Package eager runs ops at once through the float64 reference. Tests of gradient rules and lowerings use it as their
// builder.
package eager

import (
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// value is an array as an operand. Each is its own pointer, so that it can be a key.
type value struct{ ref.Array }

// Type is the value's type.
func (v *value) Type() *ir.Type { return v.Array.Type }

// New makes a value of type t that holds data, in row-major order.
func New(t *ir.Type, data []float64) ir.Value { return &value{ref.Floats(t, data...)} }

// Data returns the elements of a value of this package, in row-major order. A change of them changes the value.
func Data(v ir.Value) []float64 { return v.(*value).Data }

// Builder evaluates each op when it is emitted. It panics on an op that the reference refuses.
type Builder struct{}

// Emit implements [ir.Builder].
func (Builder) Emit(code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) []ir.Value {
	arrays := make([]ref.Array, len(in))
	for i, v := range in {
		arrays[i] = v.(*value).Array
	}
	op := ir.New(code, attr, Types(in)...)
	results, err := ref.Eval(&op, &p, arrays)
	if err != nil {
		panic(err)
	}
	out := make([]ir.Value, len(results))
	for i, r := range results {
		out[i] = &value{r}
	}
	return out
}

package ir

import (
	"fmt"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
)

// Value is an operand while a rule runs: a tensor, a node of a plan, or a node of a captured graph.
type Value interface{ Type() *Type }

// Builder runs or records ops for gradient rules and lowerings. Emit returns the op's results; it panics on an invalid
// op, which in a rule is a bug of the rule.
type Builder interface {
	Emit(code Code, attr Attr, p Params, in ...Value) []Value
}

// B adds the words that rules are written in to a Builder. Binary words broadcast and need equal dtypes.
type B struct {
	Builder
	Room *[4]Value // for the operands of one Emit at a time, of a builder that does not keep them; nil: each gets its own
}

// One is Emit of an op with one result.
func (b B) One(code Code, attr Attr, p Params, in ...Value) Value {
	if b.Room == nil || len(in) > len(b.Room) {
		return b.Emit(code, attr, p, slices.Clone(in)...)[0]
	}
	return b.Emit(code, attr, p, b.Room[:copy(b.Room[:], in)]...)[0]
}

// Unary applies a parameterless op to x.
func (b B) Unary(code Code, x Value) Value { return b.One(code, Attr{}, Params{}, x) }

// Binary applies an elementwise op to x and y after broadcasting them.
func (b B) Binary(code Code, x, y Value) Value {
	if !x.Type().SameShape(y.Type()) {
		shape, err := Broadcast(x.Type().shape, y.Type().shape)
		if err != nil {
			panic(fmt.Sprintf("ir: %s: %v", code, err))
		}
		x, y = b.Expand(x, shape), b.Expand(y, shape)
	}
	return b.One(code, Attr{}, Params{}, x, y)
}

// Add is x + y.
func (b B) Add(x, y Value) Value { return b.Binary(Add, x, y) }

// Sub is x - y.
func (b B) Sub(x, y Value) Value { return b.Binary(Sub, x, y) }

// Mul is x · y.
func (b B) Mul(x, y Value) Value { return b.Binary(Mul, x, y) }

// Div is x / y.
func (b B) Div(x, y Value) Value { return b.Binary(Div, x, y) }

// Affine is p·x + q.
func (b B) Affine(x Value, p, q float64) Value { return b.One(Affine, Attr{}, Scalars(p, q), x) }

// Scale is p·x.
func (b B) Scale(x Value, p float64) Value { return b.Affine(x, p, math.Copysign(0, -1)) } // -0 + -0 is -0

// Where is x where c holds, else y, after broadcasting x and y to the shape of c or of the larger of them.
func (b B) Where(c, x, y Value) Value {
	shape := c.Type().shape
	for _, v := range [...]Value{x, y} {
		var err error
		if shape, err = Broadcast(shape, v.Type().shape); err != nil {
			panic(fmt.Sprintf("ir: %s: %v", Where, err))
		}
	}
	return b.One(Where, Attr{}, Params{}, b.Expand(c, shape), b.Expand(x, shape), b.Expand(y, shape))
}

// Mask is x where c holds, else 0.
func (b B) Mask(c, x Value) Value { return b.Where(c, x, b.Number(x.Type().DType, 0)) }

// Number is one number, a value without dimensions. Binary words broadcast it.
func (b B) Number(dt dtype.DType, v float64) Value {
	return b.One(Full, Attr{Out: Dense(dt)}, Scalars(v))
}

// Zeros is 0 in the shape and dtype of t: an expanded view of one number.
func (b B) Zeros(t *Type) Value { return b.Expand(b.Number(t.DType, 0), t.shape) }

// Count is 0, 1, 2, … as an i64 value of a shape, in row-major order.
func (b B) Count(shape ...int) Value {
	return b.One(Iota, Attr{Out: Dense(dtype.I64, shape...)}, Scalars(0, 1))
}

// Widen converts x to the dtype of its statistics, see [Wide].
func (b B) Widen(x Value) Value { return b.Cast(x, Wide(x.Type().DType)) }

// Full is a value of type t filled with v.
func (b B) Full(t *Type, v float64) Value { return b.One(Full, Attr{Out: t.AsDense()}, Scalars(v)) }

// Cast converts x, or returns it when it has that dtype.
func (b B) Cast(x Value, dt dtype.DType) Value {
	if x.Type().DType == dt {
		return x
	}
	return b.One(Cast, Attr{DType: dt}, Params{}, x)
}

// Reshape gives x another shape, by a copy where no view exists.
func (b B) Reshape(x Value, shape ...int) Value {
	if slices.Equal(x.Type().shape, shape) {
		return x
	}
	if !x.Type().Reshapes(shape) {
		x = b.One(Copy, Attr{}, Params{}, x)
	}
	return b.One(Reshape, Attr{Out: Dense(x.Type().DType, shape...)}, Params{}, x)
}

// Expand broadcasts x to a shape.
func (b B) Expand(x Value, shape []int) Value {
	if slices.Equal(x.Type().shape, shape) {
		return x
	}
	return b.One(Expand, Attr{Out: Dense(x.Type().DType, shape...)}, Params{}, x)
}

// Permute reorders dimensions: dimension i of the result is dimension dims[i] of x.
func (b B) Permute(x Value, dims ...int) Value {
	var a Attr
	for i, d := range dims {
		a.Dims[i] = int32(d)
	}
	return b.One(Permute, a, Params{}, x)
}

// Transpose swaps the last two dimensions.
func (b B) Transpose(x Value) Value {
	n := x.Type().Rank()
	dims := make([]int, n)
	for i := range dims {
		dims[i] = i
	}
	dims[n-1], dims[n-2] = n-2, n-1
	return b.Permute(x, dims...)
}

// Slice takes n elements of dimension axis, from start in steps of step.
func (b B) Slice(x Value, axis, start, n, step int) Value {
	return b.One(Slice, Attr{Axis: int8(axis), Dims: [MaxRank]int32{int32(start), int32(n), int32(step)}}, Params{}, x)
}

// Pad puts v around x along axis: before and after it, and between neighbours.
func (b B) Pad(x Value, axis, before, after, between int, v float64) Value {
	a := Attr{Axis: int8(axis), Dims: [MaxRank]int32{int32(before), int32(after), int32(between)}}
	return b.One(Pad, a, Scalars(v), x)
}

// Gather takes x at the places idx along axis.
func (b B) Gather(x Value, axis int, idx Value) Value {
	return b.One(Gather, Attr{Axis: int8(axis)}, Params{}, x, idx)
}

// Sum adds over the dimensions of a bit set.
func (b B) Sum(x Value, axes uint16, keep bool) Value { return b.Reduce(Sum, x, axes, keep) }

// Reduce applies a reduction over the dimensions of a bit set.
func (b B) Reduce(code Code, x Value, axes uint16, keep bool) Value {
	return b.One(code, Attr{Axes: axes, Keep: keep}, Params{}, x)
}

// SumTo adds over the dimensions in which x was broadcast from shape.
func (b B) SumTo(x Value, shape []int) Value {
	if slices.Equal(x.Type().shape, shape) {
		return x
	}
	off := x.Type().Rank() - len(shape)
	var axes uint16
	for i, d := range x.Type().shape {
		if i < off || shape[i-off] == 1 && d != 1 {
			axes |= 1 << i
		}
	}
	return b.Reshape(b.Sum(x, axes, false), shape...)
}

// MatMul is the product over the last two dimensions.
func (b B) MatMul(x, y Value) Value { return b.One(MatMul, Attr{}, Params{}, x, y) }

// Rows is x with all dimensions but the last joined: […, n] becomes [m, n].
func (b B) Rows(x Value) Value {
	shape := x.Type().shape
	m := 1
	for _, d := range shape[:len(shape)-1] {
		m *= d
	}
	return b.Reshape(x, m, x.Type().Dim(-1))
}

// Scores are the attention scores p·q·kᵀ of an [Attention] op in [Wide] precision, masked: a boolean or causal mask
// leaves -Inf where a key is not seen, a floating mask is added. mask may be nil.
func (b B) Scores(q, k, mask Value, p float64, causal bool) Value {
	s := b.Scale(b.MatMul(b.Widen(q), b.Transpose(b.Widen(k))), p)
	hidden := b.Number(s.Type().DType, math.Inf(-1))
	switch {
	case mask == nil:
	case mask.Type().DType == dtype.Bool:
		s = b.Where(mask, s, hidden)
	default:
		s = b.Add(s, b.Widen(mask))
	}
	if causal {
		seen := b.Binary(Le, b.Count(k.Type().Dim(2)), b.Count(q.Type().Dim(2), 1))
		s = b.Where(seen, s, hidden)
	}
	return s
}

// Heads are q, k and v of a [SelfAttention], or their gradients, as [Attention] has them: views of x[b,t,3,h,d].
func (b B) Heads(x Value) []Value {
	s := x.Type().shape
	apart := b.Permute(x, 2, 0, 3, 1, 4)
	parts := make([]Value, 3)
	for i := range parts {
		parts[i] = b.Reshape(b.Slice(apart, 0, i, 1, 1), s[0], s[3], s[1], s[4])
	}
	return parts
}

// Packed undoes Heads, by a copy.
func (b B) Packed(parts []Value) Value {
	s := parts[0].Type().shape
	rows := make([]Value, len(parts))
	for i, x := range parts {
		rows[i] = b.Reshape(b.HeadsInside(x), s[0], s[2], 1, s[1], s[3])
	}
	return b.One(Cat, Attr{Axis: 2}, Params{}, rows...)
}

// HeadsInside is the view x[b,t,h,d] of x[b,h,t,d], and the other way round.
func (b B) HeadsInside(x Value) Value { return b.Permute(x, 0, 2, 1, 3) }

// Weights are the attention weights exp(scores - lse), with lse[b,h,t]. A row that sees no key, whose lse is -Inf, gets
// zeros.
func (b B) Weights(scores, lse Value) Value {
	none := b.Binary(Eq, lse, b.Number(lse.Type().DType, math.Inf(-1)))
	lse = b.Where(none, b.Number(lse.Type().DType, 0), lse)
	return b.Unary(Exp, b.Sub(scores, b.Reshape(lse, append(slices.Clone(lse.Type().shape), 1)...)))
}

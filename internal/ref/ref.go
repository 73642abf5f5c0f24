// Package ref is the float64 reference of every op code: plain loops that follow the definitions of [ir.Code] and
// nothing else. Engines are compared with it, and gradients with its finite differences; it shares no code with them.
//
// Floating-point results are left in float64, whatever their dtype, so that finite differences see a smooth function
// and the comparison's tolerance covers the one rounding of an engine. Cast, Full, Pad's filling and random numbers are
// rounded as their dtype says, because the rounding is their meaning. Integers wrap around in their own width.
package ref

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Array is the value of an operand or result.
type Array struct {
	Type *ir.Type  // its strides say nothing about Data
	Data []float64 // the elements in row-major order
	Int  []int64   // the same of an integer or bool array, exact beyond 2⁵³; nil: as Data says
}

// Floats makes an array of numbers.
func Floats(t *ir.Type, data ...float64) Array { return Array{Type: t, Data: data} }

// Ints makes an integer or bool array, each value reduced to the width of its dtype.
func Ints(t *ir.Type, values ...int64) Array {
	a := Array{Type: t, Data: make([]float64, len(values)), Int: make([]int64, len(values))}
	for i, v := range values {
		a.Int[i] = wrap(t.DType, v)
		a.Data[i] = float64(a.Int[i])
	}
	return a
}

// int is element i as an integer.
func (a *Array) int(i int) int64 {
	if a.Int != nil {
		return a.Int[i]
	}
	return int64(a.Data[i])
}

// dim is the size of dimension i, counted from the last when negative.
func (a *Array) dim(i int) int { return a.Type.Dim(i) }

// wrap reduces v to an integer dtype's width, or to whether it is true.
func wrap(dt dtype.DType, v int64) int64 {
	switch dt {
	case dtype.I32:
		return int64(int32(v))
	case dtype.U8:
		return int64(uint8(v))
	case dtype.Bool:
		if v != 0 {
			return 1
		}
	}
	return v
}

// integral reports whether elements are computed as integers.
func integral(dt dtype.DType) bool { return dt.IsInt() || dt == dtype.Bool }

// call is one evaluation.
type call struct {
	op  *ir.Op
	p   *ir.Params
	in  []Array
	out []*ir.Type
}

// scalar is launch parameter i as a number.
func (c *call) scalar(i int) float64 { return math.Float64frombits(c.p.Value[i]) }

// axis is the op's dimension.
func (c *call) axis() int { return int(c.op.Attr.Axis) }

// one is the op's only result, of numbers.
func (c *call) one(data []float64) ([]Array, error) { return []Array{Floats(c.out[0], data...)}, nil }

// ints is the op's only result, of integers.
func (c *call) ints(values []int64) ([]Array, error) { return []Array{Ints(c.out[0], values...)}, nil }

// results pairs the op's results with their types.
func (c *call) results(data ...[]float64) ([]Array, error) {
	out := make([]Array, len(data))
	for i, d := range data {
		out[i] = Floats(c.out[i], d...)
	}
	return out, nil
}

// pick makes a result whose elements are taken from a: from says which, and -1 means filler.
func (c *call) pick(a *Array, from []int, filler float64) ([]Array, error) {
	if integral(a.Type.DType) {
		v := make([]int64, len(from))
		for i, j := range from {
			if v[i] = int64(filler); j >= 0 {
				v[i] = a.int(j)
			}
		}
		return c.ints(v)
	}
	v := make([]float64, len(from))
	for i, j := range from {
		if v[i] = filler; j >= 0 {
			v[i] = a.Data[j]
		}
	}
	return c.one(v)
}

type eval = func(c *call) ([]Array, error)

var table [ir.Codes]eval

// set fills rows of the table.
func set(f eval, codes ...ir.Code) {
	for _, code := range codes {
		table[code] = f
	}
}

// Has reports whether a code has a reference.
func Has(code ir.Code) bool { return int(code) < len(table) && table[code] != nil }

// Eval computes an op's results. p may be nil for ops without parameters. An index out of range is an error, as it is
// one of a launch.
func Eval(op *ir.Op, p *ir.Params, in []Array) ([]Array, error) {
	out, err := op.Infer()
	if err != nil {
		return nil, err
	}
	if !Has(op.Code) {
		return nil, fmt.Errorf("ref: %s has no reference", op.Code)
	}
	if len(in) != op.NumIn() {
		return nil, fmt.Errorf("ref: %s takes %d operands, got %d", op.Code, op.NumIn(), len(in))
	}
	for i, a := range in {
		if a.Type.DType != op.In(i).DType || !a.Type.SameShape(op.In(i)) || len(a.Data) != a.Type.Size() {
			return nil, fmt.Errorf("ref: operand %d of %s is %s with %d elements, not %s", i, op.Code, a.Type, len(a.Data), op.In(i))
		}
	}
	if p == nil {
		p = new(ir.Params)
	}
	return table[op.Code](&call{op, p, in, out})
}

// each calls f with every index of a shape in row-major order.
func each(shape []int, f func(at []int)) {
	size := 1
	for _, d := range shape {
		size *= d
	}
	at := make([]int, len(shape))
	for range size {
		f(at)
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < shape[i] {
				break
			}
			at[i] = 0
		}
	}
}

// place is the row-major position of an index.
func place(shape, at []int) int {
	n := 0
	for i, d := range shape {
		n = n*d + at[i]
	}
	return n
}

// split is the number of elements before, along and after a dimension.
func split(shape []int, axis int) (outer, n, inner int) {
	outer, inner = 1, 1
	for _, d := range shape[:axis] {
		outer *= d
	}
	for _, d := range shape[axis+1:] {
		inner *= d
	}
	return outer, shape[axis], inner
}

// rows is an array as rows of its last dimension; a single number is one row of one.
func rows(a *Array) (m, n int) {
	if a.Type.Rank() == 0 {
		return 1, 1
	}
	m, n, _ = split(a.Type.Shape(), a.Type.Rank()-1)
	return m, n
}

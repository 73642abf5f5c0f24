package lower

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// lastAt sorts the indices, which brings together those of one place, and adds the number of the last of each to a 0. Where there are keys,
// it sorts by them first: a sort keeps the order of equal elements.
func lastAt(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	out, axis := op.Attr.Out, int(op.Attr.Axis)
	idx := in[len(in)-1]
	n := idx.Type().Dim(axis)
	if idx.Type().Size() == 0 {
		return []ir.Value{b.Zeros(out), b.Zeros(out.As(dtype.Bool))}
	}
	var order ir.Value
	if len(in) == 2 {
		order = rising(b, in[0], axis, op.Attr.Flag)
		idx = b.Gather(idx, axis, order)
	}
	to, number := sortedAlong(b, idx, axis, 0)
	if order != nil {
		number = b.Gather(order, axis, number)
	}
	ends := append([]int(nil), to.Type().Shape()...)
	ends[axis] = 1
	differs := b.Binary(ir.Ne, b.Slice(to, axis, 1, n-1, 1), b.Slice(to, axis, 0, n-1, 1))
	end := b.One(ir.Cat, ir.Attr{Axis: op.Attr.Axis}, ir.Params{}, differs, b.Full(ir.Dense(dtype.Bool, ends...), 1))
	none, one := b.Number(dtype.I64, 0), b.Number(dtype.I64, 1)
	found := b.One(ir.ScatterAdd, ir.Attr{Axis: op.Attr.Axis}, ir.Params{}, b.Zeros(out), to, b.Where(end, b.Add(number, one), none))
	hit := b.Binary(ir.Lt, none, found)
	return []ir.Value{b.Where(hit, b.Sub(found, one), none), hit}
}

// rising is the places of keys in their order, NaN last in both.
func rising(b ir.B, key ir.Value, axis int, flag ir.Flag) ir.Value {
	if flag != 0 && key.Type().DType.IsFloat() {
		key, flag = b.Unary(ir.Neg, key), 0
	}
	_, order := sortedAlong(b, key, axis, flag)
	return order
}

// sortedAlong is the elements in order along a dimension, and their places.
func sortedAlong(b ir.B, x ir.Value, axis int, flag ir.Flag) (values, places ir.Value) {
	op := ir.New(ir.Sort, ir.Attr{Axis: int8(axis), Flag: flag}, x.Type())
	out := sort(b, &op, nil, []ir.Value{x})
	return out[0], out[1]
}

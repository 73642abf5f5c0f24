package tensor

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
)

// Reshape gives t another shape; one size may be -1 and follows from the others. It is a view where strides allow.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	shape = t.inferSize(shape)
	if slices.Equal(shape, t.Shape()) {
		return t
	}
	if !t.typ.Reshapes(shape) {
		t = t.Contiguous()
	}
	return t.view(ir.Reshape, ir.Attr{Out: ir.Dense(t.DType(), shape...)})
}

// inferSize replaces a -1 and checks the number of elements.
func (t *Tensor) inferSize(shape []int) []int {
	out, hole, n := slices.Clone(shape), -1, 1
	for i, d := range shape {
		if d == -1 && hole < 0 {
			hole = i
			continue
		}
		n *= d
	}
	if hole >= 0 && n > 0 && t.Size()%n == 0 {
		out[hole] = t.Size() / n
		n = t.Size()
	}
	if n == t.Size() && len(out) > ir.MaxRank {
		checkShape("Reshape", out)
	}
	if n != t.Size() || hole >= 0 && out[hole] < 0 || ir.CheckShape(out) != nil {
		raise("Reshape", "the number of elements must stay; one size may be -1", "shape %v with %d elements into %v", t.Shape(), t.Size(), shape)
	}
	return out
}

// Flatten joins the dimensions from start on into one.
func (t *Tensor) Flatten(start int) *Tensor {
	if t.Rank() == 0 {
		return t.Reshape(1)
	}
	start = t.axis("Flatten", start)
	n := 1
	for _, d := range t.Shape()[start:] {
		n *= d
	}
	return t.Reshape(append(slices.Clone(t.Shape()[:start]), n)...)
}

// Permute reorders dimensions: dimension i of the result is dimension dims[i] of t.
func (t *Tensor) Permute(dims ...int) *Tensor {
	if len(dims) != t.Rank() {
		raise("Permute", "name every dimension once", "%v for shape %v", dims, t.Shape())
	}
	var a ir.Attr
	for i, d := range dims {
		a.Dims[i] = int32(t.axis("Permute", d))
	}
	return t.view(ir.Permute, a)
}

// Transpose swaps two dimensions.
func (t *Tensor) Transpose(i, j int) *Tensor {
	i, j = t.axis("Transpose", i), t.axis("Transpose", j)
	if i == j {
		return t
	}
	var a ir.Attr
	for k := range t.Rank() {
		a.Dims[k] = int32(k)
	}
	a.Dims[i], a.Dims[j] = int32(j), int32(i)
	return t.view(ir.Permute, a)
}

// Expand repeats dimensions of size 1, and new leading ones, without a copy; -1 keeps a size.
func (t *Tensor) Expand(shape ...int) *Tensor {
	want := slices.Clone(shape)
	off := len(shape) - t.Rank()
	for i := range want {
		if want[i] == -1 && i >= off && off >= 0 {
			want[i] = t.Shape()[i-off]
		}
	}
	return t.expand(want)
}

func (t *Tensor) expand(shape []int) *Tensor {
	if slices.Equal(shape, t.Shape()) {
		return t
	}
	checkShape("Expand", shape)
	return t.view(ir.Expand, ir.Attr{Out: ir.Dense(t.DType(), shape...)})
}

// Unsqueeze inserts a dimension of size 1 before dimension axis; -1 appends one.
func (t *Tensor) Unsqueeze(axis int) *Tensor {
	n := t.Rank()
	if axis < -n-1 || axis > n {
		raise("Unsqueeze", "dimensions count from 0, or from -1 at the end", "dimension %d of shape %v", axis, t.Shape())
	}
	if axis < 0 {
		axis += n + 1
	}
	return t.Reshape(slices.Insert(slices.Clone(t.Shape()), axis, 1)...)
}

// Squeeze drops the named dimensions, which must have size 1; without names, all of size 1.
func (t *Tensor) Squeeze(axes ...int) *Tensor {
	drop := t.axes("Squeeze", axes)
	var shape []int
	for i, d := range t.Shape() {
		switch {
		case drop>>i&1 == 0 || d != 1 && len(axes) == 0:
			shape = append(shape, d)
		case d != 1:
			raise("Squeeze", "only sizes of 1 can be dropped", "dimension %d of shape %v", i, t.Shape())
		}
	}
	return t.Reshape(shape...)
}

// Slice is the view of elements lo to hi-1 of a dimension; negative bounds count from the end.
func (t *Tensor) Slice(axis, lo, hi int) *Tensor { return t.SliceStep(axis, lo, hi, 1) }

// SliceStep is the view of every step-th element from lo to below hi of a dimension.
func (t *Tensor) SliceStep(axis, lo, hi, step int) *Tensor {
	axis = t.axis("Slice", axis)
	d := t.Shape()[axis]
	from, to := lo, hi
	if lo < 0 {
		from += d
	}
	if hi < 0 {
		to += d
	}
	if from < 0 || to > d || from > to || step < 1 {
		raise("Slice", "bounds must lie within the dimension, the step be positive", "[%d:%d:%d] of dimension %d of shape %v", lo, hi, step, axis, t.Shape())
	}
	if to > math.MaxInt32 || step > math.MaxInt32 {
		raise("Slice", "reshape the dimension into two", "[%d:%d:%d] reaches beyond element 2^31 of dimension %d of shape %v", lo, hi, step, axis, t.Shape())
	}
	n := (to - from + step - 1) / step
	if n == d && step == 1 {
		return t
	}
	return t.view(ir.Slice, ir.Attr{Axis: int8(axis), Dims: [ir.MaxRank]int32{int32(from), int32(n), int32(step)}})
}

// Select is element i of a dimension, which it drops; negative i counts from the end.
func (t *Tensor) Select(axis, i int) *Tensor {
	axis = t.axis("Select", axis)
	d := t.Shape()[axis]
	if i < -d || i >= d {
		raise("Select", "indices count from 0, or from -1 at the end", "index %d of dimension %d of shape %v", i, axis, t.Shape())
	}
	if i < 0 {
		i += d
	}
	s := t.Slice(axis, i, i+1)
	return s.Reshape(slices.Delete(slices.Clone(s.Shape()), axis, axis+1)...)
}

// Split cuts a dimension into views of the given sizes.
func (t *Tensor) Split(axis int, sizes ...int) []*Tensor {
	axis = t.axis("Split", axis)
	total := 0
	for _, n := range sizes {
		total += n
	}
	if total != t.Shape()[axis] || slices.ContainsFunc(sizes, func(n int) bool { return n < 0 }) {
		raise("Split", "the sizes must add up, none below 0", "sizes %v of dimension %d of shape %v", sizes, axis, t.Shape())
	}
	out, lo := make([]*Tensor, len(sizes)), 0
	for i, n := range sizes {
		out[i] = t.Slice(axis, lo, lo+n)
		lo += n
	}
	return out
}

// Cat joins tensors along a dimension.
func Cat(axis int, ts ...*Tensor) *Tensor {
	if len(ts) == 0 {
		raise("Cat", "give at least one", "no tensors to join")
	}
	in := ofOneDType("Cat", ts...)
	return apply(ir.Cat, ir.Attr{Axis: int8(in[0].axis("Cat", axis))}, ir.Params{}, in...)[0]
}

// Stack joins tensors of one shape along a new dimension.
func Stack(axis int, ts ...*Tensor) *Tensor {
	if len(ts) == 0 {
		raise("Stack", "give at least one", "no tensors to join")
	}
	in := make([]*Tensor, len(ts))
	for i, t := range ts {
		in[i] = t.Unsqueeze(axis)
	}
	if axis < 0 {
		axis += in[0].Rank()
	}
	return Cat(axis, in...)
}

// Pad puts before and after elements of value v around a dimension.
func (t *Tensor) Pad(axis, before, after int, v float64) *Tensor {
	if before < 0 || after < 0 || max(before, after) > math.MaxInt32 {
		raise("Pad", "give numbers from 0 to 2^31-1; Slice cuts", "padding %d and %d of shape %v", before, after, t.Shape())
	}
	a := ir.Attr{Axis: int8(t.axis("Pad", axis)), Dims: [ir.MaxRank]int32{int32(before), int32(after)}}
	return t.apply1(ir.Pad, a, ir.Scalars(v))
}

// Contiguous is t in row-major order: t itself, or a copy.
func (t *Tensor) Contiguous() *Tensor {
	if t.Type().IsDense() {
		return t
	}
	return t.apply1(ir.Copy, ir.Attr{}, ir.Params{})
}

// Clone copies t.
func (t *Tensor) Clone() *Tensor { return t.apply1(ir.Copy, ir.Attr{}, ir.Params{}) }

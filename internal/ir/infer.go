package ir

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
)

// Class is the set of dtypes an operand may have.
type Class uint8

// The classes. Those after Any are of dtypes that are computed in.
const (
	Any     Class = iota
	Ordered       // any that has arithmetic or an order
	Numbers       // all but bool
	Floats
	Bools
	Wides // floats that statistics are kept in
	Bits  // integers, which have bits
)

var classNames = [...]string{"a dtype", "a dtype with an order", "a numeric dtype", "a floating dtype", "bool", "f32 or f64", "an integer dtype"}

// Has reports whether a dtype is in the class.
func (c Class) Has(t dtype.DType) bool {
	switch {
	case c == Any:
		return t.Valid()
	case t.IsStorage():
		return false
	case c == Floats:
		return t.IsFloat()
	case c == Wides:
		return t.IsFloat() && Wide(t) == t
	case c == Numbers:
		return t.Valid() && t != dtype.Bool
	case c == Bools:
		return t == dtype.Bool
	case c == Bits:
		return t.Valid() && t != dtype.Bool && !t.IsFloat()
	}
	return t.Valid()
}

// Infer verifies the op and returns the types of its results.
func (o *Op) Infer() ([]*Type, error) {
	if o.Code == Invalid || o.Code >= codeCount {
		return nil, fmt.Errorf("%s is no operation", o.Code)
	}
	r := &table[o.Code]
	if n := o.NumIn(); n < r.min || n > r.max {
		return nil, fmt.Errorf("%s: takes %s, got %d", o.Code, operands(r), n)
	}
	if r.min > 0 && !r.Class.Has(o.In(0).DType) {
		return nil, fmt.Errorf("%s: %w", o.Code, badDType("needs %s, got %s%s", classNames[r.Class], o.In(0).DType, stored(o.In(0).DType)))
	}
	if err := o.checkAttr(); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Code, err)
	}
	out, err := r.infer(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Code, err)
	}
	return out, nil
}

// stored says of a dtype why no op takes it that computes.
func stored(dt dtype.DType) string {
	if dt.IsStorage() {
		return ", which is for storage: Cast it first"
	}
	return ""
}

// DTypeError says that an op does not take an operand for its dtype, whatever its shape.
type DTypeError struct{ text string }

// Error says which dtypes met.
func (e *DTypeError) Error() string { return e.text }

func badDType(format string, args ...any) error { return &DTypeError{fmt.Sprintf(format, args...)} }

func operands(r *Row) string {
	switch {
	case r.max == many:
		return fmt.Sprintf("%d or more operands", r.min)
	case r.min == r.max:
		return fmt.Sprintf("%d operands", r.min)
	}
	return fmt.Sprintf("%d to %d operands", r.min, r.max)
}

func one(t *Type) ([]*Type, error) { return []*Type{t}, nil }

// dense is one row-major result, whose shape follows from the operands' and may be more than a type can have.
func dense(dt dtype.DType, shape ...int) ([]*Type, error) {
	if err := CheckShape(shape); err != nil {
		return nil, fmt.Errorf("the result: %w", err)
	}
	return one(Dense(dt, shape...))
}

func same(o *Op) ([]*Type, error) { return one(o.In(0).AsDense()) }

// agree checks that all operands have the first one's dtype and shape.
func agree(o *Op) error {
	a := o.In(0)
	for _, b := range o.Ins()[1:] {
		if a.DType != b.DType {
			return badDType("operands of dtypes %s and %s", a.DType, b.DType)
		}
		if !a.SameShape(b) {
			return fmt.Errorf("operands of shapes %v and %v", a.shape, b.shape)
		}
	}
	return nil
}

func equal(o *Op) ([]*Type, error) {
	if err := agree(o); err != nil {
		return nil, err
	}
	return same(o)
}

func compare(o *Op) ([]*Type, error) {
	if err := agree(o); err != nil {
		return nil, err
	}
	return one(o.In(0).As(dtype.Bool))
}

// given is the rule of ops whose result type is an attribute.
func given(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	if c := table[o.Code].Class; !c.Has(o.Attr.Out.DType) {
		return nil, badDType("needs %s, got %s", classNames[c], o.Attr.Out.DType)
	}
	return one(o.Attr.Out)
}

func (o *Op) wantOut() error {
	if o.Attr.Out == nil {
		return fmt.Errorf("the result type is missing")
	}
	return nil
}

func inferReshape(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	x, y := o.In(0), o.Attr.Out
	if x.size != y.size {
		return nil, fmt.Errorf("%v has %d elements, %v has %d", x.shape, x.size, y.shape, y.size)
	}
	strides, ok := ReshapeStrides(x, y.shape)
	if !ok {
		return nil, fmt.Errorf("%s has no view of shape %v", x, y.shape)
	}
	return one(Strided(x.DType, y.shape, strides))
}

func inferPermute(o *Op) ([]*Type, error) {
	x := o.In(0)
	n := x.Rank()
	var shape, strides [MaxRank]int
	seen := 0
	for i := range n {
		d := int(o.Attr.Dims[i])
		if d < 0 || d >= n || seen>>d&1 == 1 {
			return nil, fmt.Errorf("%v is no permutation of %d dimensions", o.Attr.Dims[:n], n)
		}
		seen |= 1 << d
		shape[i], strides[i] = x.shape[d], x.strides[d]
	}
	return one(Strided(x.DType, shape[:n], strides[:n]))
}

func inferExpand(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	x, y := o.In(0), o.Attr.Out
	off := y.Rank() - x.Rank()
	if off < 0 {
		return nil, fmt.Errorf("%v to fewer dimensions %v", x.shape, y.shape)
	}
	strides := make([]int, y.Rank())
	for i, d := range x.shape {
		switch {
		case d == y.shape[off+i]:
			strides[off+i] = x.strides[i]
		case d != 1:
			return nil, fmt.Errorf("%v does not broadcast to %v", x.shape, y.shape)
		}
	}
	return one(Strided(x.DType, y.shape, strides))
}

func inferSlice(o *Op) ([]*Type, error) {
	x := o.In(0)
	axis, start, n, step := int(o.Attr.Axis), int(o.Attr.Dims[0]), int(o.Attr.Dims[1]), int(o.Attr.Dims[2])
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	if step < 1 || start < 0 || n < 0 || n > 0 && start+(n-1)*step >= x.shape[axis] {
		return nil, fmt.Errorf("%d elements from %d in steps of %d of a dimension of %d", n, start, step, x.shape[axis])
	}
	var shape, strides [MaxRank]int
	copy(shape[:], x.shape)
	copy(strides[:], x.strides)
	shape[axis], strides[axis] = n, x.strides[axis]*step
	return one(Strided(x.DType, shape[:x.Rank()], strides[:x.Rank()]))
}

func (o *Op) wantAxis(x *Type) error {
	if a := int(o.Attr.Axis); a < 0 || a >= x.Rank() {
		return fmt.Errorf("dimension %d of a value with %d", a, x.Rank())
	}
	return nil
}

func inferCopy(o *Op) ([]*Type, error) {
	if o.Attr.Out == nil {
		return same(o)
	}
	if x, y := o.In(0), o.Attr.Out; x.DType != y.DType || !x.SameShape(y) {
		return nil, fmt.Errorf("%s into %s", x, y)
	}
	return one(o.Attr.Out)
}

func inferCast(o *Op) ([]*Type, error) {
	if !o.Attr.DType.Valid() {
		return nil, badDType("%s is no dtype", o.Attr.DType)
	}
	return one(o.In(0).As(o.Attr.DType))
}

func inferWhere(o *Op) ([]*Type, error) {
	c, x, y := o.In(0), o.In(1), o.In(2)
	if c.DType != dtype.Bool {
		return nil, badDType("the condition is %s, not bool", c.DType)
	}
	if x.DType != y.DType || !x.SameShape(y) || !c.SameShape(x) {
		return nil, fmt.Errorf("operands %s, %s and %s", c, x, y)
	}
	return one(x.AsDense())
}

func inferReduce(o *Op) ([]*Type, error) {
	x, axes := o.In(0), o.Attr.Axes
	if int(axes)>>x.Rank() != 0 {
		return nil, fmt.Errorf("dimensions %b of a value with %d", axes, x.Rank())
	}
	var shape [MaxRank]int
	n := 0
	for i, d := range x.shape {
		if axes>>i&1 == 0 {
			shape[n] = d
			n++
			continue
		}
		if d == 0 && o.Code != Sum && o.Code != Prod && x.size == 0 {
			return nil, fmt.Errorf("dimension %d of %v is empty: there is no extreme value", i, x.shape)
		}
		if o.Attr.Keep {
			shape[n] = 1
			n++
		}
	}
	return one(Dense(x.DType, shape[:n]...))
}

func inferArg(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	if x.shape[o.Attr.Axis] == 0 {
		return nil, fmt.Errorf("dimension %d of %v is empty", o.Attr.Axis, x.shape)
	}
	r := New(Sum, Attr{Axes: 1 << o.Attr.Axis, Keep: o.Attr.Keep}, x)
	out, err := inferReduce(&r)
	if err != nil {
		return nil, err
	}
	return one(out[0].As(dtype.I64))
}

func inferAlong(o *Op) ([]*Type, error) {
	if err := o.wantAxis(o.In(0)); err != nil {
		return nil, err
	}
	return same(o)
}

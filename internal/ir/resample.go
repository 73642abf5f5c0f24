package ir

import (
	"fmt"
	"math"
)

// Curve says of which elements a result of [Resample] is made.
type Curve uint8

// The curves. Windows take all elements that a result covers, where results lie further apart than elements.
const (
	Nearest       Curve = iota // the element at ⌊o·Step⌋
	NearestMiddle              // at ⌊(o+½)·Step⌋
	Lines                      // on a line between two
	Cubics                     // on Keys' curve through four, a = -0.75
	LineWindows                // by the distance, to 0 at a step or at an element, if these are further apart
	CubicWindows               // by Keys' curve, a = -0.5, of twice that

	curves
)

// Resampling is how [Resample] gives a dimension another size. Result o lies in x at (o+½)·Step - ½, or with Corners at o·Step;
// places are computed step by step in f32, of f64 operands in f64 ([Nearest] and [NearestMiddle] always in f32). Elements beyond
// the ends are the outermost, but for windows, which end there; weights of windows are divided by their sum.
type Resampling struct {
	Axis, Size int // the dimension, and its size in the result
	Curve
	Corners bool
	Step    float64
}

// Attr packs them.
func (r Resampling) Attr() Attr {
	bits := math.Float64bits(r.Step)
	a := Attr{Axis: int8(r.Axis), Dims: [MaxRank]int32{int32(r.Size), int32(r.Curve), 0, int32(bits >> 32), int32(bits)}}
	if r.Corners {
		a.Dims[2] = 1
	}
	return a
}

// Resampling unpacks them.
func (a *Attr) Resampling() Resampling {
	d := &a.Dims
	return Resampling{int(a.Axis), int(d[0]), Curve(d[1]), d[2] != 0, math.Float64frombits(uint64(uint32(d[3]))<<32 | uint64(uint32(d[4])))}
}

// Reach is how far from a result the elements of its window lie, and the factor by which windows are wider than elements.
func (r *Resampling) Reach() (reach, wide float64) {
	wide = max(r.Step, 1)
	if r.Curve == CubicWindows {
		return 2 * wide, wide
	}
	return wide, wide
}

// Taps is the most elements of n that a result is made of.
func (r *Resampling) Taps(n int) int {
	switch r.Curve {
	case Nearest, NearestMiddle:
		return 1
	case Lines:
		return 2
	case Cubics:
		return 4
	}
	reach, _ := r.Reach()
	return int(min(2*math.Ceil(reach)+1, float64(n)))
}

// resampled is the type of the result of x.
func resampled(o *Op, x *Type) ([]int, error) {
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	r := o.Attr.Resampling()
	n := x.Dim(r.Axis)
	switch {
	case r.Size < 1 || n < 1:
		return nil, fmt.Errorf("a dimension of %d elements made %d", n, r.Size)
	case uint32(o.Attr.Dims[1]) >= uint32(curves) || uint32(o.Attr.Dims[2]) > 1 || r.Corners && r.Curve <= NearestMiddle:
		return nil, fmt.Errorf("there is no curve %d with corners %d", o.Attr.Dims[1], o.Attr.Dims[2])
	case !(r.Step >= 0 && float64(r.Size-1)*r.Step <= float64(n)):
		return nil, fmt.Errorf("%d results, %g apart, reach beyond %d elements", r.Size, r.Step, n)
	}
	shape := append([]int{}, x.shape...)
	shape[r.Axis] = r.Size
	return shape, nil
}

func inferResample(o *Op) ([]*Type, error) {
	shape, err := resampled(o, o.In(0))
	if err != nil {
		return nil, err
	}
	return dense(o.In(0).DType, shape...)
}

func inferResampleGrad(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	shape, err := resampled(o, o.Attr.Out)
	if err != nil {
		return nil, err
	}
	return gradOf(o, shape)
}

// perTap is a product and a sum for each element that a result is made of.
func perTap(grad bool) counted {
	return func(o *Op, out []*Type) int64 {
		r := o.Attr.Resampling()
		x, y := o.In(0), out[0]
		if grad {
			x, y = y, x
		}
		return 2 * int64(y.size) * int64(r.Taps(x.Dim(r.Axis)))
	}
}

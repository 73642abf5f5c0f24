package nn

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// UpsampleMode says how values between elements are found.
type UpsampleMode int

// The modes of PyTorch's interpolate.
const (
	ModeNearest      UpsampleMode = iota // the element at ⌊o·scale⌋, as OpenCV
	ModeNearestExact                     // the nearest, as Pillow
	ModeBilinear                         // on lines between two elements in each dimension: linear, bilinear, trilinear
	ModeBicubic                          // on cubic curves through four elements in each dimension, with a = -0.75: bicubic
	ModeArea                             // averages, as [AdaptiveAvgPool]
)

// Upsample gives the dimensions behind the channels of x[n, c, ...] other sizes, as PyTorch's interpolate. One of Size and
// Scale is given.
type Upsample struct {
	Size         []int     // of each dimension, or one for all
	Scale        []float64 // by how much each grows, or one for all; sizes are rounded down
	Mode         UpsampleMode
	AlignCorners bool // of ModeBilinear and ModeBicubic: outermost elements stay where they are, and not their outer edges
	Antialias    bool // of ModeBilinear and ModeBicubic, of pictures: where it shrinks, windows widen; a of ModeBicubic is -0.5
	Recompute    bool // positions follow from the sizes, not from Scale
}

// Forward resamples. Numbers other than floating-point ones have neighbours only.
func (l Upsample) Forward(x *tensor.Tensor) *tensor.Tensor {
	size, step := l.plan(x)
	if l.Mode == ModeArea {
		return AdaptiveAvgPool{size}.Forward(x)
	}
	narrow := x.DType()
	if l.Mode > ModeNearestExact && !narrow.IsFloat() {
		tensor.Raise("nn.Upsample", "convert with Cast(dtype.F32)", "values between those of %s", narrow)
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		if l.Mode > ModeNearestExact && narrow.Size() < 4 {
			x = x.Cast(dtype.F32)
		}
		var even []int // dimensions of which each element makes as many
		for i := range size {
			axis := i + 2
			if size[i] == x.Dim(axis) && (l.Antialias || l.Mode == ModeBilinear) { // whatever the scale is, as in PyTorch
				continue
			}
			s := sampling{Upsample: l, in: x.Dim(axis), out: size[i], step: step[i], double: narrow == dtype.F64}
			if s.tabulate(); s.phases() > 0 {
				even = append(even, axis)
			} else {
				x = s.resample(x, axis)
			}
		}
		return l.spread(x, even, size, step).Cast(narrow)
	})
}

// plan has the size of each dimension, and how far apart in x the results lie; 0: by the sizes.
func (l Upsample) plan(x *tensor.Tensor) (size []int, step []float64) {
	dims := x.Rank() - 2
	bad := func(what string) {
		tensor.Raise("nn.Upsample", "values are [samples, channels, ...]; give Size or Scale, of each dimension or one for all, from 1, and above 0", "%s of shape %v, %+v", what, x.Shape(), l)
	}
	switch smooth := l.Mode == ModeBilinear || l.Mode == ModeBicubic; {
	case dims < 1 || (len(l.Size) == 0) == (len(l.Scale) == 0) || slices.Contains(x.Shape()[2:], 0):
		bad("values")
	case (l.AlignCorners || l.Antialias) && !smooth || l.Antialias && dims != 2 || l.Mode == ModeBicubic && dims != 2 || l.Mode < ModeNearest || l.Mode > ModeArea:
		bad("corners, windows or curves that the mode has not,")
	}
	size, step = make([]int, dims), make([]float64, dims)
	for i := range dims {
		if len(l.Size) > 0 {
			if size[i] = pickOf(l.Size, i, dims); size[i] < 1 {
				bad("a size")
			}
			continue
		}
		scale := pickOf(l.Scale, i, dims)
		if size[i] = int(math.Floor(float64(x.Dim(i+2)) * scale)); !(scale > 0) || size[i] < 1 {
			bad("a size")
		}
		if !l.Recompute {
			step[i] = 1 / scale
		}
	}
	if n := max(len(l.Size), len(l.Scale)); n != 1 && n != dims {
		bad("sizes")
	}
	return size, step
}

// pickOf is entry i of dims, or the one that serves all.
func pickOf[T any](list []T, i, dims int) (v T) {
	switch {
	case len(list) == 1:
		return list[0]
	case len(list) == dims:
		return list[i]
	}
	return v
}

// sampling is what is done with one dimension. Positions are computed as PyTorch does, in float32 but for float64 values.
type sampling struct {
	Upsample
	in, out int
	step    float64
	double  bool
	at      []float64 // where in x each result lies
}

func (s *sampling) round(v float64) float64 {
	if s.double && s.Mode > ModeNearestExact {
		return v
	}
	return float64(float32(v))
}

// scale is the distance of results in x.
func (s *sampling) scale() float64 {
	switch {
	case s.AlignCorners && s.out == 1:
		return 0
	case s.AlignCorners:
		return s.round(float64(s.in-1) / float64(s.out-1))
	case s.step > 0:
		return s.round(s.step)
	}
	return s.round(float64(s.in) / float64(s.out))
}

// tabulate finds where results lie.
func (s *sampling) tabulate() {
	s.at = make([]float64, s.out)
	scale := s.scale()
	for o := range s.at {
		switch v := float64(o); {
		case s.Mode == ModeNearest && s.out == s.in:
			s.at[o] = v
		case s.Mode == ModeNearest && s.out == 2*s.in:
			s.at[o] = float64(o / 2)
		case s.Mode == ModeNearest:
			s.at[o] = min(math.Floor(s.round(v*scale)), float64(s.in-1))
		case s.Mode == ModeNearestExact:
			s.at[o] = min(math.Floor(s.round((v+0.5)*scale)), float64(s.in-1))
		case s.AlignCorners:
			s.at[o] = s.round(v * scale)
		default:
			s.at[o] = s.round(s.round((v+0.5)*scale) - 0.5)
		}
	}
}

// phases is how many results each element makes, in the same way each, or 0.
func (s *sampling) phases() int {
	if s.out%s.in != 0 || s.Antialias {
		return 0
	}
	n := s.out / s.in
	for o, at := range s.at {
		if math.Abs(at-float64(o/n)-s.at[o%n]) > 1e-4 {
			return 0
		}
	}
	return n
}

// spread makes of each element of the given dimensions as many as the sizes say: one value after the other of each phase, which
// are put between each other at the end.
func (l Upsample) spread(x *tensor.Tensor, axes, size []int, step []float64) *tensor.Tensor {
	parts, times := []*tensor.Tensor{x}, []int{}
	for _, axis := range axes {
		s := sampling{Upsample: l, in: x.Dim(axis), out: size[axis-2], step: step[axis-2], double: x.DType() == dtype.F64}
		s.tabulate()
		n := s.phases()
		var all []*tensor.Tensor
		for _, p := range parts {
			all = append(all, s.each(p, axis, n)...)
		}
		parts, times = all, append(times, n)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	shape, order := slices.Clone(times), []int{}
	for d, n := range x.Shape() {
		if shape, order = append(shape, n), append(order, len(times)+d); slices.Contains(axes, d) {
			order = append(order, slices.Index(axes, d))
		}
	}
	full := slices.Clone(x.Shape())
	for i, axis := range axes {
		full[axis] *= times[i]
	}
	return tensor.Stack(0, parts...).Reshape(shape...).Permute(order...).Reshape(full...)
}

// each is the values of each of n phases.
func (s *sampling) each(x *tensor.Tensor, axis, n int) (all []*tensor.Tensor) {
	if s.Mode <= ModeNearestExact {
		return slices.Repeat([]*tensor.Tensor{x}, n)
	}
	before, after := 0, 0
	for _, at := range s.at[:n] {
		first, w := s.taps(at)
		before, after = max(before, -first), max(after, first+len(w)-1)
	}
	around := replicated(x, axis, before, after)
	for _, at := range s.at[:n] {
		first, weights := s.taps(at)
		var sum *tensor.Tensor
		for k, w := range weights {
			from := before + first + k
			if w == 0 {
				continue
			}
			if part := around.Slice(axis, from, from+s.in); sum == nil {
				sum = part.Scale(w)
			} else {
				sum = sum.AddScaled(part, w)
			}
		}
		all = append(all, sum)
	}
	return all
}

// taps are the first element that a result at a place hangs on, and the weights of this one and its neighbours.
func (s *sampling) taps(at float64) (first int, w []float64) {
	low := math.Floor(at)
	t := at - low
	if s.Mode == ModeBilinear {
		return int(low), []float64{1 - t, t}
	}
	return int(low) - 1, []float64{cubic(1+t, -0.75), cubic(t, -0.75), cubic(1-t, -0.75), cubic(2-t, -0.75)}
}

// cubic is Keys' kernel at a distance.
func cubic(d, a float64) float64 {
	switch {
	case d < 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return (d - 1) * (d - 2) * (d - 2) * a
	}
	return 0
}

package nn

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// resample gives a dimension its size, where no two results need be alike: by sums of elements that are picked. Places and
// weights are computed on the device, so that a captured step takes nothing from the host.
func (s *sampling) resample(x *tensor.Tensor, axis int) *tensor.Tensor {
	e := x.Env()
	if s.Mode <= ModeNearestExact {
		return x.IndexSelect(axis, s.nearest(e).Cast(dtype.I64))
	}
	idx, weights, whole := s.neighbours(e)
	var sum *tensor.Tensor
	for k := range idx {
		part := x.IndexSelect(axis, idx[k].Cast(dtype.I64))
		shape := slices.Repeat([]int{1}, x.Rank())
		shape[axis] = s.out
		w := weights[k].Cast(x.DType()).Reshape(shape...)
		if part = part.Mul(w); !whole[k] { // an element that does not count may be infinite
			part = tensor.Where(w.Eq(number(w, 0)), number(part, 0), part)
		}
		if sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	return sum
}

// places are those in x of results, before they are cut to whole numbers.
func (s *sampling) places(e *tensor.Env) *tensor.Tensor {
	dt := dtype.F32
	if s.double {
		dt = dtype.F64
	}
	o := e.Arange(s.out).Cast(dt)
	if s.AlignCorners {
		return o.Scale(s.scale())
	}
	return o.AddScalar(0.5).Scale(s.scale()).AddScalar(-0.5)
}

// nearest is the element that each result is.
func (s *sampling) nearest(e *tensor.Env) *tensor.Tensor {
	o := e.Arange(s.out).Cast(dtype.F32)
	if s.Mode == ModeNearestExact {
		o = o.AddScalar(0.5)
	}
	return o.Scale(s.scale()).Floor().Clamp(0, float64(s.in-1))
}

// neighbours are the elements that results hang on, as numbers, the weights of these, and whether all of one rank count.
func (s *sampling) neighbours(e *tensor.Env) (idx, weights []*tensor.Tensor, whole []bool) {
	if s.Antialias {
		return s.windows(e)
	}
	last := float64(s.in - 1)
	at := s.places(e)
	if s.Mode == ModeBilinear {
		at = at.Clamp(0, last)
		low := at.Floor()
		t := at.Sub(low)
		return []*tensor.Tensor{low, low.AddScalar(1).Clamp(0, last)}, []*tensor.Tensor{t.Neg().AddScalar(1), t}, []bool{true, true}
	}
	low := at.Floor()
	t := at.Sub(low)
	for k := range 4 {
		idx = append(idx, low.AddScalar(float64(k-1)).Clamp(0, last))
		weights = append(weights, keys(t.AddScalar(float64(1-k)).Abs(), -0.75))
	}
	return idx, weights, []bool{true, true, true, true}
}

// windows are the neighbours where a result hangs on all elements that it covers.
func (s *sampling) windows(e *tensor.Env) (idx, weights []*tensor.Tensor, whole []bool) {
	scale, reach := s.scale(), 1.0
	if s.Mode == ModeBicubic {
		reach = 2
	}
	wide := max(scale, 1)
	o := s.places(e)
	center := o.AddScalar(0.5)
	if s.AlignCorners {
		center = e.Arange(s.out).Cast(o.DType()).AddScalar(0.5).Scale(scale)
	}
	first := center.AddScalar(0.5-reach*wide).Trunc().Clamp(0, math.Inf(1))
	end := center.AddScalar(0.5+reach*wide).Trunc().Clamp(0, float64(s.in))
	var sum *tensor.Tensor
	for k := range min(int(math.Ceil(reach*wide))*2+1, s.in) {
		j := first.AddScalar(float64(k))
		d := j.Sub(center).AddScalar(0.5).Scale(1 / wide).Abs()
		w := d.Neg().AddScalar(1).Clamp(0, 1)
		if s.Mode == ModeBicubic {
			w = keys(d, -0.5)
		}
		w = tensor.Where(j.Lt(end), w, number(w, 0))
		idx, weights, whole = append(idx, j.Clamp(0, float64(s.in-1))), append(weights, w), append(whole, false)
		if sum == nil {
			sum = w
		} else {
			sum = sum.Add(w)
		}
	}
	for k := range weights {
		weights[k] = weights[k].Div(sum)
	}
	return idx, weights, whole
}

// keys is [cubic] of distances.
func keys(d *tensor.Tensor, a float64) *tensor.Tensor {
	near := d.Scale(a + 2).AddScalar(-(a + 3)).Mul(d).Mul(d).AddScalar(1)
	far := d.AddScalar(-1).Mul(d.AddScalar(-2).Square()).Scale(a) // d³-5d²+8d-4, which cancels, by its roots
	one := number(d, 1)
	return tensor.Where(d.Lt(one), near, tensor.Where(d.Lt(number(d, 2)), far, number(d, 0)))
}

package nn

import (
	"cmp"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/sorting"
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
	dt := x.DType()
	if !dt.IsFloat() {
		if l.Mode > ModeNearestExact {
			tensor.Raise("nn.Upsample", "convert with Cast(dtype.F32)", "values between those of %s", dt)
		}
		for i := range size {
			x = x.IndexSelect(i+2, l.nearest(x, i+2, size[i], step[i]))
		}
		return x
	}
	var list []tensor.Resampling
	for _, i := range order(size, x.Shape()[2:]) {
		axis := i + 2
		if size[i] == x.Dim(axis) && (l.Antialias || l.Mode == ModeBilinear) { // whatever the scale is, as in PyTorch
			continue
		}
		list = append(list, l.resampling(axis, x.Dim(axis), size[i], step[i], dt == dtype.F64))
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Resample(list...) })
}

// order is the dimensions, those first that shrink the most or grow the least, and the last before others.
func order(size, from []int) (dims []int) {
	for i := range size {
		dims = append(dims, len(size)-1-i)
	}
	sorting.By(dims, func(i, j int) int { return cmp.Compare(size[i]*from[j], size[j]*from[i]) })
	return dims
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

var curves = [...]tensor.Curve{tensor.CurveNearest, tensor.CurveNearestMiddle, tensor.CurveLines, tensor.CurveCubics}

// resampling is what is done with a dimension. Its step is computed as PyTorch does, in float32 but for float64 values between others.
func (l Upsample) resampling(axis, in, out int, step float64, double bool) tensor.Resampling {
	r := tensor.Resampling{Axis: axis, Size: out, Curve: curves[l.Mode], Corners: l.AlignCorners}
	if l.Antialias {
		r.Curve += tensor.CurveLineWindows - tensor.CurveLines
	}
	switch {
	case l.AlignCorners && out == 1:
	case l.AlignCorners:
		r.Step = float64(in-1) / float64(out-1)
	case l.Mode == ModeNearest && (out == in || out == 2*in):
		r.Step = float64(in) / float64(out)
	default:
		r.Step = cmp.Or(step, float64(in)/float64(out))
	}
	if !double || l.Mode <= ModeNearestExact {
		r.Step = float64(float32(r.Step))
	}
	return r
}

// nearest is the elements that results are, computed on the device, so that a captured step takes nothing from the host.
func (l Upsample) nearest(x *tensor.Tensor, axis, size int, step float64) *tensor.Tensor {
	places := x.Env().Arange(x.Dim(axis)).Cast(dtype.F64)
	return places.Resample(l.resampling(0, x.Dim(axis), size, step, false)).Cast(dtype.I64)
}

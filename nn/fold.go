package nn

import (
	"cmp"

	"github.com/warpline-ml/warpline/tensor"
)

// Windows are where a window lies on pictures, height before width. Zero strides and dilations mean 1.
type Windows struct{ Kernel, Stride, Padding, Dilation [2]int }

// Unfold lays the windows of x[n, c, h, w] side by side: [n, c·kernel, windows]. Without samples neither has any.
type Unfold struct{ Windows }

// Fold is the sum of windows, each at its place: [n, c·kernel, windows] to [n, c, Size...].
type Fold struct {
	Size [2]int
	Windows
}

// Forward lays windows side by side.
func (l Unfold) Forward(x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() == 3 {
		return l.Forward(x.Unsqueeze(0)).Squeeze(0)
	}
	if x.Rank() != 4 {
		tensor.Raise("nn.Unfold", "values are [samples, channels, height, width]", "shape %v", x.Shape())
	}
	size := [2]int{x.Dim(2), x.Dim(3)}
	l.counts("nn.Unfold", size)
	return l.unfold(x)
}

// Forward adds windows up.
func (l Fold) Forward(x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() == 2 {
		return l.Forward(x.Unsqueeze(0)).Squeeze(0)
	}
	rows, cols := l.counts("nn.Fold", l.Size)
	if area := l.Kernel[0] * l.Kernel[1]; x.Rank() != 3 || x.Dim(1)%area != 0 || x.Dim(2) != rows*cols {
		tensor.Raise("nn.Fold", "values are [samples, channels · kernel, windows]", "shape %v for %d × %d windows of %v", x.Shape(), rows, cols, l.Kernel)
	}
	return l.fold(x, l.Size)
}

// counts are the rows and columns of windows on pictures of a size.
func (w Windows) counts(op string, size [2]int) (rows, cols int) {
	var n [2]int
	for i := range n {
		reach := max(w.Dilation[i], 1)*(w.Kernel[i]-1) + 1
		n[i] = (size[i]+2*w.Padding[i]-reach)/max(w.Stride[i], 1) + 1
		if w.Kernel[i] < 1 || min(w.Stride[i], w.Padding[i], w.Dilation[i]) < 0 || size[i]+2*w.Padding[i] < reach {
			tensor.Raise(op, "windows lie inside of the picture and its padding", "windows %+v on pictures of %v", w, size)
		}
	}
	return n[0], n[1]
}

// each is what a padded picture shows of each place of the window.
func (w Windows) each(x *tensor.Tensor, rows, cols int, f func(place int, part *tensor.Tensor)) {
	sh, sw := cmp.Or(w.Stride[0], 1), cmp.Or(w.Stride[1], 1)
	for i := range w.Kernel[0] {
		for j := range w.Kernel[1] {
			top, left := i*cmp.Or(w.Dilation[0], 1), j*cmp.Or(w.Dilation[1], 1)
			f(i*w.Kernel[1]+j, x.SliceStep(2, top, top+(rows-1)*sh+1, sh).SliceStep(3, left, left+(cols-1)*sw+1, sw))
		}
	}
}

// unfold and fold are each other's gradient.
func (w Windows) unfold(x *tensor.Tensor) *tensor.Tensor {
	size := [2]int{x.Dim(2), x.Dim(3)}
	return tensor.Func{
		Forward: func(_ *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			rows, cols := w.counts("nn.Unfold", size)
			var parts []*tensor.Tensor
			w.each(in[0].Pad(2, w.Padding[0], w.Padding[0], 0).Pad(3, w.Padding[1], w.Padding[1], 0), rows, cols,
				func(_ int, part *tensor.Tensor) { parts = append(parts, part) })
			return []*tensor.Tensor{tensor.Stack(2, parts...).Reshape(x.Dim(0), x.Dim(1)*len(parts), rows*cols)}
		},
		Backward: func(_ *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{w.fold(g[0], size)}
		},
	}.Apply(x)[0]
}

func (w Windows) fold(x *tensor.Tensor, size [2]int) *tensor.Tensor {
	return tensor.Func{
		Forward: func(_ *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			rows, cols := w.counts("nn.Fold", size)
			n, area := x.Dim(0), w.Kernel[0]*w.Kernel[1]
			parts := in[0].Reshape(n, x.Dim(1)/area, area, rows, cols)
			sum := x.Env().FullOf(x.DType(), 0, n, x.Dim(1)/area, size[0]+2*w.Padding[0], size[1]+2*w.Padding[1])
			w.each(sum, rows, cols, func(place int, part *tensor.Tensor) { part.AddInPlace(parts.Select(2, place)) })
			return []*tensor.Tensor{sum.Slice(2, w.Padding[0], w.Padding[0]+size[0]).Slice(3, w.Padding[1], w.Padding[1]+size[1]).Contiguous()}
		},
		Backward: func(_ *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{w.unfold(g[0])}
		},
	}.Apply(x)[0]
}

package nn

import (
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// PixelShuffle makes pictures By times as high and wide of channels: [..., c·By², h, w] to [..., c, h·By, w·By] (Shi et al., 2016).
type PixelShuffle struct{ By int }

// Forward rearranges.
func (l PixelShuffle) Forward(x *tensor.Tensor) *tensor.Tensor {
	r := l.By
	lead, n, c, h, w := picture("nn.PixelShuffle", x)
	if r < 1 || c%(r*r) != 0 {
		tensor.Raise("nn.PixelShuffle", "channels are a multiple of By·By", "%d times for shape %v", r, x.Shape())
	}
	y := x.Reshape(n, c/(r*r), r, r, h, w).Permute(0, 1, 4, 2, 5, 3)
	return y.Reshape(append(lead, c/(r*r), h*r, w*r)...)
}

// PixelUnshuffle is the way back of [PixelShuffle].
type PixelUnshuffle struct{ By int }

// Forward rearranges.
func (l PixelUnshuffle) Forward(x *tensor.Tensor) *tensor.Tensor {
	r := l.By
	lead, n, c, h, w := picture("nn.PixelUnshuffle", x)
	if r < 1 || h%r != 0 || w%r != 0 {
		tensor.Raise("nn.PixelUnshuffle", "height and width are multiples of By", "%d times for shape %v", r, x.Shape())
	}
	y := x.Reshape(n, c, h/r, r, w/r, r).Permute(0, 1, 3, 5, 2, 4)
	return y.Reshape(append(lead, c*r*r, h/r, w/r)...)
}

// ChannelShuffle takes channels of x[n, c, ...] from each of its groups by turns.
type ChannelShuffle struct{ Groups int }

// Forward rearranges.
func (l ChannelShuffle) Forward(x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() < 3 || l.Groups < 1 || x.Dim(1)%l.Groups != 0 {
		tensor.Raise("nn.ChannelShuffle", "values are [samples, channels, ...], channels a multiple of the groups", "%d groups of shape %v", l.Groups, x.Shape())
	}
	shape := slices.Concat([]int{x.Dim(0), l.Groups, x.Dim(1) / l.Groups}, x.Shape()[2:])
	return x.Reshape(shape...).Transpose(1, 2).Reshape(x.Shape()...)
}

// picture is a shape [..., c, h, w] in parts, and of how many such it is.
func picture(op string, x *tensor.Tensor) (lead []int, n, c, h, w int) {
	if x.Rank() < 3 {
		tensor.Raise(op, "values are [..., channels, height, width]", "shape %v", x.Shape())
	}
	shape := x.Shape()
	at := len(shape) - 3
	n = 1 // which -1 would not find where there are no elements
	for _, size := range shape[:at] {
		n *= size
	}
	return slices.Clone(shape[:at]), n, shape[at], shape[at+1], shape[at+2]
}

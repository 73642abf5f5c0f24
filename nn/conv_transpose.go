package nn

import (
	"cmp"

	"github.com/warpline-ml/warpline/tensor"
)

// ConvTransposeConfig describes transposed convolutions. Zero fields mean stride 1, padding 0, dilation 1, one group, a bias.
type ConvTransposeConfig struct {
	Stride, Padding, OutputPadding, Dilation, Groups int
	NoBias                                           bool
}

// ConvTranspose2d is the gradient of a convolution as a layer: [n, in, h, w] to [n, out, h', w'], where
// h' = (h - 1)·stride - 2·padding + dilation·(kernel-1) + output padding + 1. Without samples neither has any.
type ConvTranspose2d struct {
	Weight *tensor.Tensor `nn:"weight"` // [in, out/groups, kernel, kernel]
	Bias   *tensor.Tensor `nn:"bias"`   // [out], or nil
	tensor.ConvTranspose
}

// NewConvTranspose2d makes a layer with a kernel×kernel window; for uneven windows change its ConvTranspose and Weight. Weight
// and bias are drawn uniformly from ±1/√(out/groups·kernel²).
func NewConvTranspose2d(env *tensor.Env, in, out, kernel int, c ConvTransposeConfig) *ConvTranspose2d {
	groups := ConvConfig{Groups: c.Groups}.groups("nn.NewConvTranspose2d", in, out, kernel)
	bound := fanBound(out / groups * kernel * kernel)
	l := &ConvTranspose2d{Weight: uniform(env, bound, in, out/groups, kernel, kernel), ConvTranspose: tensor.ConvTranspose{OutputPadding: square(c.OutputPadding),
		Conv: tensor.Conv{Stride: square(c.Stride), Padding: square(c.Padding), Dilation: square(c.Dilation), Groups: groups}}}
	if !c.NoBias {
		l.Bias = uniform(env, bound, out)
	}
	return l
}

// Forward applies the layer.
func (l *ConvTranspose2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	return in.leave(l.apply(in.x, l.ConvTranspose))
}

// ForwardSize applies the layer so that results have a size, of those that strides leave open.
func (l *ConvTranspose2d) ForwardSize(x *tensor.Tensor, height, width int) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	c := l.ConvTranspose
	for i, size := range [2]int{height, width} {
		c.OutputPadding[i] = extra(in.x.Dim(i-2), l.Weight.Dim(i-2), c.Stride[i], c.Padding[i], c.Dilation[i], size)
	}
	return in.leave(l.apply(in.x, c))
}

// extra is the output padding that gives a size.
func extra(n, kernel, stride, padding, dilation, size int) int {
	stride, dilation = cmp.Or(stride, 1), cmp.Or(dilation, 1)
	least := (n-1)*stride - 2*padding + dilation*(kernel-1) + 1
	if size < least || size >= least+stride {
		tensor.Raise("nn.ForwardSize", "give one of the sizes of which a convolution makes this one", "size %d, which may be from %d to %d", size, least, least+stride-1)
	}
	return size - least
}

func (l *ConvTranspose2d) apply(x *tensor.Tensor, c tensor.ConvTranspose) *tensor.Tensor {
	return pictures(x, func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor { return x.ConvTranspose2d(l.Weight, l.Bias, c) })
	})
}

func (l *ConvTranspose2d) products(x, _ *tensor.Tensor) int {
	return x.Size() * l.Weight.Size() / max(l.Weight.Dim(0), 1)
}

// ConvTranspose1d is [ConvTranspose2d] of sequences: [n, in, t] to [n, out, t'].
type ConvTranspose1d struct {
	Weight                                           *tensor.Tensor `nn:"weight"` // [in, out/groups, kernel]
	Bias                                             *tensor.Tensor `nn:"bias"`   // [out], or nil
	Stride, Padding, OutputPadding, Dilation, Groups int            // 0: 1, none, none, 1, 1
}

// NewConvTranspose1d makes a layer. Weight and bias are drawn uniformly from ±1/√(out/groups·kernel).
func NewConvTranspose1d(env *tensor.Env, in, out, kernel int, c ConvTransposeConfig) *ConvTranspose1d {
	groups := ConvConfig{Groups: c.Groups}.groups("nn.NewConvTranspose1d", in, out, kernel)
	bound := fanBound(out / groups * kernel)
	l := &ConvTranspose1d{Weight: uniform(env, bound, in, out/groups, kernel), Stride: c.Stride, Padding: c.Padding, OutputPadding: c.OutputPadding, Dilation: c.Dilation, Groups: groups}
	if !c.NoBias {
		l.Bias = uniform(env, bound, out)
	}
	return l
}

// Forward applies the layer.
func (l *ConvTranspose1d) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	return in.leave(l.apply(in.x, l.OutputPadding))
}

// ForwardSize applies the layer so that results have a size, of those that strides leave open.
func (l *ConvTranspose1d) ForwardSize(x *tensor.Tensor, size int) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	return in.leave(l.apply(in.x, extra(in.x.Dim(-1), l.Weight.Dim(-1), l.Stride, l.Padding, l.Dilation, size)))
}

func (l *ConvTranspose1d) apply(x *tensor.Tensor, more int) *tensor.Tensor {
	return flat("nn.ConvTranspose1d", x, func(x *tensor.Tensor) *tensor.Tensor {
		return x.ConvTranspose2d(l.Weight.In(x.Env()).Unsqueeze(2), l.Bias, tensor.ConvTranspose{OutputPadding: [2]int{0, more},
			Conv: tensor.Conv{Stride: [2]int{1, l.Stride}, Padding: [2]int{0, l.Padding}, Dilation: [2]int{1, l.Dilation}, Groups: l.Groups}})
	})
}

func (l *ConvTranspose1d) products(x, _ *tensor.Tensor) int {
	return x.Size() * l.Weight.Size() / max(l.Weight.Dim(0), 1)
}

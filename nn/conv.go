package nn

import (
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// Conv2d is the two-dimensional convolution (cross-correlation): [n, in, h, w] to [n, out, h', w'], where
// h' = ⌊(h + 2·padding - dilation·(kernel-1) - 1) / stride⌋ + 1. Without samples neither has any.
type Conv2d struct {
	Weight *tensor.Tensor `nn:"weight"` // [out, in/groups, kernel, kernel]
	Bias   *tensor.Tensor `nn:"bias"`   // [out], or nil
	tensor.Conv
	Around Pad   // what is put around before, other than zeros on both sides alike
	LoRA   *LoRA `nn:""` // or nil; see [AddLoRA]
}

// ConvConfig describes a convolution, of pictures a square one. Zero fields mean stride 1, padding 0, dilation 1, one group, a
// bias.
type ConvConfig struct {
	Stride, Padding, Dilation, Groups int
	NoBias                            bool
	Same                              bool    // padding as much as keeps the size, without a stride; of an odd number more behind
	Mode                              PadMode // what stands in the padding
}

// groups are at least one, which divide inputs and outputs.
func (c ConvConfig) groups(op string, in, out, kernel int) int {
	groups := max(c.Groups, 1)
	if in < 1 || out < 1 || kernel < 1 || in%groups != 0 || out%groups != 0 {
		tensor.Raise(op, "all are positive, inputs and outputs multiples of the groups", "%d inputs and %d outputs in %d groups, a kernel of %d", in, out, groups, kernel)
	}
	return groups
}

// around is the padding of dims dimensions where the convolution has none such of its own.
func (c ConvConfig) around(op string, kernel, dims int) Pad {
	before, after := c.Padding, c.Padding
	if c.Same {
		if c.Stride > 1 || c.Padding != 0 {
			tensor.Raise(op, "leave Stride and Padding out", "padding that keeps the size with a stride of %d and padding of %d", c.Stride, c.Padding)
		}
		reach := max(c.Dilation, 1) * (kernel - 1)
		before, after = reach/2, reach-reach/2
	}
	if c.Mode == PadConstant && !c.Same || before == 0 && after == 0 {
		return Pad{}
	}
	return Pad{Sides: slices.Repeat([]int{before, after}, dims), Mode: c.Mode}
}

// NewConv2d makes a layer with a kernel×kernel window; for uneven windows change its Conv and Weight. Weight and bias are
// drawn uniformly from ±1/√(in/groups·kernel²).
func NewConv2d(env *tensor.Env, in, out, kernel int, c ConvConfig) *Conv2d {
	groups := c.groups("nn.NewConv2d", in, out, kernel)
	bound := fanBound(in / groups * kernel * kernel)
	l := &Conv2d{Weight: uniform(env, bound, out, in/groups, kernel, kernel), Conv: tensor.Conv{
		Stride: square(c.Stride), Padding: square(c.Padding), Dilation: square(c.Dilation), Groups: groups}}
	if !c.NoBias {
		l.Bias = uniform(env, bound, out)
	}
	if l.Around = c.around("nn.NewConv2d", kernel, 2); l.Around.Sides != nil {
		l.Conv.Padding = [2]int{}
	}
	return l
}

func square(n int) [2]int { return [2]int{n, n} }

// Forward applies the layer.
func (l *Conv2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	return in.leave(pictures(in.x, l.apply))
}

func (l *Conv2d) apply(x *tensor.Tensor) *tensor.Tensor {
	if l.Around.Sides == nil && !l.LoRA.beside() {
		return x.Conv2d(l.Weight, l.Bias, l.Conv)
	}
	return tensor.Chain(x, l.Around.Forward, func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Conv2d(l.Weight, l.Bias, l.Conv)
		if l.LoRA.beside() {
			y = l.LoRA.addConv(x, y, l.Conv)
		}
		return y
	})
}

// pictures runs f, of [n, c, h, w], for one picture [c, h, w] too.
func pictures(x *tensor.Tensor, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	if x.Rank() != 3 {
		return f(x)
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor { return f(x.Unsqueeze(0)).Squeeze(0) })
}

func (l *Conv2d) products(_, y *tensor.Tensor) int {
	return y.Size() * l.Weight.Size() / max(l.Weight.Dim(0), 1)
}

// Conv1d is the convolution (cross-correlation) of sequences: [n, in, t] to [n, out, t'], where
// t' = ⌊(t + 2·padding - dilation·(kernel-1) - 1) / stride⌋ + 1. Without samples neither has any.
type Conv1d struct {
	Weight                            *tensor.Tensor `nn:"weight"` // [out, in/groups, kernel]
	Bias                              *tensor.Tensor `nn:"bias"`   // [out], or nil
	Stride, Padding, Dilation, Groups int            // 0: 1, none, 1, 1
	Around                            Pad            // what is put around before, other than zeros on both sides alike
}

// NewConv1d makes a layer. Weight and bias are drawn uniformly from ±1/√(in/groups·kernel).
func NewConv1d(env *tensor.Env, in, out, kernel int, c ConvConfig) *Conv1d {
	groups := c.groups("nn.NewConv1d", in, out, kernel)
	bound := fanBound(in / groups * kernel)
	l := &Conv1d{Weight: uniform(env, bound, out, in/groups, kernel), Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Groups: groups}
	if !c.NoBias {
		l.Bias = uniform(env, bound, out)
	}
	if l.Around = c.around("nn.NewConv1d", kernel, 1); l.Around.Sides != nil {
		l.Padding = 0
	}
	return l
}

// Forward applies the layer.
func (l *Conv1d) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	y := tensor.Chain(in.x, l.Around.Forward, func(x *tensor.Tensor) *tensor.Tensor {
		return flat("nn.Conv1d", x, func(x *tensor.Tensor) *tensor.Tensor {
			return x.Conv2d(l.Weight.In(x.Env()).Unsqueeze(2), l.Bias, tensor.Conv{Stride: [2]int{1, l.Stride}, Padding: [2]int{0, l.Padding}, Dilation: [2]int{1, l.Dilation}, Groups: l.Groups})
		})
	})
	return in.leave(y)
}

func (l *Conv1d) products(_, y *tensor.Tensor) int {
	return y.Size() * l.Weight.Size() / max(l.Weight.Dim(0), 1)
}

// flat runs f, of pictures of one row, for sequences [n, c, t] or [c, t].
func flat(op string, x *tensor.Tensor, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	switch x.Rank() {
	case 2:
		return f(x.Unsqueeze(0).Unsqueeze(2)).Squeeze(0, 2)
	case 3:
		return f(x.Unsqueeze(2)).Squeeze(2)
	}
	tensor.Raise(op, "values are [samples, channels, steps]", "shape %v", x.Shape())
	return nil
}

// MaxPool2d is the largest value of each window: [n, c, h, w] to [n, c, h', w'], or both without samples. Stride 0
// means the kernel's size.
type MaxPool2d struct{ Kernel, Stride, Padding int }

// Forward pools.
func (l MaxPool2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	pool := tensor.Pool{Kernel: square(l.Kernel), Stride: square(l.Stride), Padding: square(l.Padding)}
	return pictures(x, func(x *tensor.Tensor) *tensor.Tensor { return x.MaxPool2d(pool) })
}

// AvgPool2d is the average of each window, with samples or without. Stride 0 means the kernel's size. Padding counts as zeros, unless
// ExcludePadding averages over what lies inside the input.
type AvgPool2d struct {
	Kernel, Stride, Padding int
	ExcludePadding          bool
}

// Forward pools.
func (l AvgPool2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	pool := tensor.Pool{Kernel: square(l.Kernel), Stride: square(l.Stride), Padding: square(l.Padding)}
	return pictures(x, func(x *tensor.Tensor) *tensor.Tensor {
		if !l.ExcludePadding || l.Padding == 0 {
			return x.AvgPool2d(pool)
		}
		return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
			inside := x.Env().FullOf(x.DType(), 1, 1, 1, x.Dim(2), x.Dim(3)).AvgPool2d(pool)
			return x.AvgPool2d(pool).Div(inside)
		})
	})
}

// GlobalAvgPool averages each channel: [n, c, h, w] to [n, c, 1, 1].
type GlobalAvgPool struct{}

// Forward averages.
func (GlobalAvgPool) Forward(x *tensor.Tensor) *tensor.Tensor {
	return x.Mean(-2, -1).Unsqueeze(-1).Unsqueeze(-1)
}

package nn

import "github.com/warpline-ml/warpline/tensor"

// AdaptiveAvgPool averages windows that cover the last dimensions of x[n, c, ...], so that these get the sizes Size; 0 keeps
// a dimension's. Window o of m over n elements is from ⌊o·n/m⌋ to ⌈(o+1)·n/m⌉.
type AdaptiveAvgPool struct{ Size []int }

// AdaptiveMaxPool is the largest value of each such window, of one or two dimensions.
type AdaptiveMaxPool struct{ Size []int }

// Forward pools.
func (l AdaptiveAvgPool) Forward(x *tensor.Tensor) *tensor.Tensor {
	return adaptive("nn.AdaptiveAvgPool", x, l.Size, len(l.Size), func(x *tensor.Tensor, axis, out int) *tensor.Tensor {
		n := x.Dim(axis)
		if n%out == 0 {
			shape := append([]int{}, x.Shape()...)
			shape[axis] = out
			return x.Reshape(spliced(shape, axis, out, n/out)...).Mean(axis + 1)
		}
		windows, in := overWindows(x, axis, out)
		sum := tensor.Where(in, windows, number(windows, 0)).Sum(axis + 1)
		return sum.Div(in.Cast(sum.DType()).Sum(1))
	})
}

// Forward pools.
func (l AdaptiveMaxPool) Forward(x *tensor.Tensor) *tensor.Tensor {
	if len(l.Size) == 1 {
		return AdaptiveMaxPool{[]int{1, l.Size[0]}}.Forward(x.Unsqueeze(-2)).Squeeze(-2)
	}
	kernel := [2]int{}
	y := adaptive("nn.AdaptiveMaxPool", x, l.Size, 2, func(x *tensor.Tensor, axis, out int) *tensor.Tensor {
		n := x.Dim(axis)
		k := &kernel[axis+2-x.Rank()]
		if *k = n / out; n%out == 0 {
			return x
		}
		windows, _ := overWindows(x, axis, out)
		*k = windows.Dim(axis + 1)
		shape := append([]int{}, x.Shape()...)
		shape[axis] = out * *k
		return windows.Reshape(shape...)
	})
	shape := y.Shape()
	lead := shape[:len(shape)-2]
	y = y.Reshape(-1, 1, shape[len(shape)-2], shape[len(shape)-1]).MaxPool2d(tensor.Pool{Kernel: kernel})
	return y.Reshape(append(append([]int{}, lead...), y.Dim(2), y.Dim(3))...)
}

// adaptive gives the last dimensions their sizes, one by one.
func adaptive(op string, x *tensor.Tensor, size []int, dims int, f func(x *tensor.Tensor, axis, out int) *tensor.Tensor) *tensor.Tensor {
	if len(size) != dims || dims == 0 || x.Rank() <= dims {
		tensor.Raise(op, "give a size for each of the last dimensions, behind channels", "sizes %v for shape %v", size, x.Shape())
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		for i, out := range size {
			axis := x.Rank() - dims + i
			if out == 0 {
				out = x.Dim(axis)
			}
			if out < 0 || x.Dim(axis) == 0 {
				tensor.Raise(op, "sizes are positive", "sizes %v for shape %v", size, x.Shape())
			}
			x = f(x, axis, out)
		}
		return x
	})
}

// spliced is a shape with two sizes in place of that of a dimension.
func spliced(shape []int, axis, a, b int) []int {
	out := append([]int{}, shape[:axis]...)
	return append(append(out, a, b), shape[axis+1:]...)
}

// overWindows is x with windows of equal length in place of a dimension, [..., out, longest, ...], and which of their elements
// belong to a window; the others are its last.
func overWindows(x *tensor.Tensor, axis, out int) (windows, in *tensor.Tensor) {
	n, e := x.Dim(axis), x.Env()
	longest := 0
	for o := range out {
		longest = max(longest, ((o+1)*n+out-1)/out-o*n/out)
	}
	o := e.Arange(out).Unsqueeze(1)
	whole := e.FullOf(o.DType(), float64(out))
	first := o.Mul(e.FullOf(o.DType(), float64(n))).FloorDiv(whole)
	end := o.AddScalar(1).Mul(e.FullOf(o.DType(), float64(n))).AddScalar(float64(out - 1)).FloorDiv(whole)
	at := first.Add(e.Arange(longest))
	in = at.Lt(end)
	at = at.Minimum(end.AddScalar(-1))
	windows = x.IndexSelect(axis, at.Reshape(-1)).Reshape(spliced(x.Shape(), axis, out, longest)...)
	shape := []int{out, longest}
	for range x.Rank() - 1 - axis {
		shape = append(shape, 1)
	}
	return windows, in.Reshape(shape...)
}

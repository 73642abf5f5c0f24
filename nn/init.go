package nn

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// The functions below are torch.nn.init's. They write into a parameter, or another value, and draw from its env. With
// [Init] they serve a model:
//
//	nn.Init(model, func(path string, p *tensor.Tensor) {
//		if p.Rank() > 1 {
//			nn.InitKaimingNormal(p, nn.Kaiming{})
//		}
//	})

// written runs f in p's env without recording, and writes its result into p.
func written(p *tensor.Tensor, f func(e *tensor.Env) *tensor.Tensor) {
	p.Env().NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor {
		p.CopyInPlace(f(e))
		return nil
	})
}

// InitUniform draws p uniformly from [lo, hi).
func InitUniform(p *tensor.Tensor, lo, hi float64) {
	written(p, func(e *tensor.Env) *tensor.Tensor { return e.Rand(p.Shape()...).Scale(hi - lo).AddScalar(lo) })
}

// InitNormal draws p from a normal distribution.
func InitNormal(p *tensor.Tensor, mean, std float64) {
	written(p, func(e *tensor.Env) *tensor.Tensor { return e.Randn(p.Shape()...).Scale(std).AddScalar(mean) })
}

// InitTruncNormal draws p from a normal distribution within [lo, hi]. PyTorch's bounds are -2 and 2, whatever std is.
func InitTruncNormal(p *tensor.Tensor, mean, std, lo, hi float64) {
	if !(lo < hi && std > 0) {
		tensor.Raise("nn.InitTruncNormal", "0 < std, and the bounds in their order", "std %v, bounds %v and %v", std, lo, hi)
	}
	below := func(v float64) float64 { return math.Erf((v - mean) / std / math.Sqrt2) }
	from, to := below(lo), below(hi)
	written(p, func(e *tensor.Env) *tensor.Tensor {
		v := e.Rand(p.Shape()...).Floats()
		for i, u := range v {
			v[i] = min(max(mean+std*math.Sqrt2*math.Erfinv(from+u*(to-from)), lo), hi)
		}
		return tensor.From(e, v, p.Shape()...)
	})
}

// InitConstant fills p with v.
func InitConstant(p *tensor.Tensor, v float64) { p.FillInPlace(v) }

// InitEye makes the matrix p the identity.
func InitEye(p *tensor.Tensor) {
	if p.Rank() != 2 {
		tensor.Raise("nn.InitEye", "give a matrix", "shape %v", p.Shape())
	}
	written(p, func(e *tensor.Env) *tensor.Tensor {
		return e.Arange(p.Dim(0)).Unsqueeze(1).Eq(e.Arange(p.Dim(1)))
	})
}

// InitDirac makes a convolution's weight [out, in/groups, kernel...] hand on its input: output i of a group is its input i,
// by a 1 in the middle of the kernel.
func InitDirac(p *tensor.Tensor, groups int) {
	if p.Rank() < 3 || p.Rank() > 5 || groups < 1 || p.Dim(0)%groups != 0 {
		tensor.Raise("nn.InitDirac", "give the weight of a convolution, whose outputs are a multiple of the groups", "shape %v in %d groups", p.Shape(), groups)
	}
	out, in, middle, window := p.Dim(0)/groups, p.Dim(1), 0, 1
	for _, k := range p.Shape()[2:] {
		middle, window = middle*k+k/2, window*k
	}
	v := make([]float64, p.Size())
	for g := range groups {
		for i := range min(out, in) {
			v[((g*out+i)*in+i)*window+middle] = 1
		}
	}
	written(p, func(e *tensor.Env) *tensor.Tensor { return tensor.From(e, v, p.Shape()...) })
}

// Fans are how many inputs and outputs meet in an element of a weight [out, in, kernel...]: sizes times the kernel's.
func Fans(p *tensor.Tensor) (in, out int) {
	if p.Rank() < 2 {
		tensor.Raise("nn.Fans", "give a weight of two dimensions or more", "shape %v", p.Shape())
	}
	window := 1
	for _, k := range p.Shape()[2:] {
		window *= k
	}
	return p.Dim(1) * window, p.Dim(0) * window
}

// Gain is the factor of a standard deviation that keeps that of values through an activation: "linear", "conv1d", "conv2d",
// "conv3d", "conv_transpose1d" (2d, 3d) and "sigmoid" 1, "tanh" 5/3, "relu" √2, "selu" 3/4, "leaky_relu" √(2/(1+slope²)).
// Others have no slope.
func Gain(activation string, slope float64) float64 {
	switch activation {
	case "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid":
		return 1
	case "tanh":
		return 5. / 3
	case "relu":
		return math.Sqrt2
	case "selu":
		return 3. / 4
	case "leaky_relu":
		return math.Sqrt(2 / (1 + slope*slope))
	}
	tensor.Raise("nn.Gain", "use linear, convND, conv_transposeND, sigmoid, tanh, relu, leaky_relu or selu", "there is no activation %q", activation)
	return 0
}

// InitXavierUniform draws a weight uniformly from ±gain·√(6/(in+out)), by its [Fans] (Glorot and Bengio, 2010).
func InitXavierUniform(p *tensor.Tensor, gain float64) {
	bound := math.Sqrt(3) * xavier(p, gain)
	InitUniform(p, -bound, bound)
}

// InitXavierNormal draws a weight from the normal distribution of the same deviation, gain·√(2/(in+out)).
func InitXavierNormal(p *tensor.Tensor, gain float64) { InitNormal(p, 0, xavier(p, gain)) }

func xavier(p *tensor.Tensor, gain float64) float64 {
	in, out := Fans(p)
	return gain * math.Sqrt(2/float64(in+out))
}

// Kaiming configures [InitKaimingUniform] and [InitKaimingNormal]. The zero value is PyTorch's default.
type Kaiming struct {
	Activation string  // that follows, as of [Gain]; "" means leaky_relu
	Slope      float64 // of leaky_relu
	FanOut     bool    // keeps the deviation of gradients, not of values
}

func (k Kaiming) std(p *tensor.Tensor) float64 {
	fan, out := Fans(p)
	if k.FanOut {
		fan = out
	}
	if k.Activation == "" {
		k.Activation = "leaky_relu"
	}
	if fan == 0 {
		return 0
	}
	return Gain(k.Activation, k.Slope) / math.Sqrt(float64(fan))
}

// InitKaimingUniform draws a weight uniformly from ±gain·√(3/fan) (He et al., 2015).
func InitKaimingUniform(p *tensor.Tensor, k Kaiming) {
	bound := math.Sqrt(3) * k.std(p)
	InitUniform(p, -bound, bound)
}

// InitKaimingNormal draws a weight from the normal distribution of the same deviation, gain/√fan.
func InitKaimingNormal(p *tensor.Tensor, k Kaiming) { InitNormal(p, 0, k.std(p)) }

// InitSparse makes of each column of the matrix p a share sparsity, rounded up, zero, and draws the rest from a normal
// distribution (Martens, 2010).
func InitSparse(p *tensor.Tensor, sparsity, std float64) {
	if p.Rank() != 2 || !(sparsity >= 0 && sparsity <= 1) {
		tensor.Raise("nn.InitSparse", "give a matrix and a share", "shape %v, sparsity %v", p.Shape(), sparsity)
	}
	rows, cols := p.Dim(0), p.Dim(1)
	zeros := int(math.Ceil(sparsity * float64(rows)))
	written(p, func(e *tensor.Env) *tensor.Tensor {
		v, order := e.Randn(rows, cols).Scale(std).Floats(), e.Rand(rows, cols).Floats()
		for c := range cols {
			at := make([]int, rows)
			for r := range at {
				at[r] = r*cols + c
			}
			sorting.By(at, func(a, b int) int {
				if order[a] < order[b] {
					return -1
				}
				return 1
			})
			for _, i := range at[:zeros] {
				v[i] = 0
			}
		}
		return tensor.From(e, v, rows, cols)
	})
}

// InitOrthogonal makes of p, as a matrix of its first dimension by the others, one with orthonormal rows or columns,
// whichever are fewer, times gain: uniform among these (Saxe et al., 2014).
func InitOrthogonal(p *tensor.Tensor, gain float64) {
	if p.Rank() < 2 {
		tensor.Raise("nn.InitOrthogonal", "give two dimensions or more", "shape %v", p.Shape())
	}
	if p.Size() == 0 {
		return
	}
	written(p, func(e *tensor.Env) *tensor.Tensor {
		rows, cols := p.Dim(0), p.Size()/p.Dim(0)
		n, width := min(rows, cols), max(rows, cols)
		q := orthonormal(e.Randn(n, width).Cast(dtype.F64)).Scale(gain)
		if rows > cols {
			q = q.Transpose(0, 1)
		}
		return q.Reshape(p.Shape()...)
	})
}

// orthonormal is the rows of a made orthonormal in their order: of some rows at a time what they share with those before
// is subtracted on the device, twice, and the rest by the host.
func orthonormal(a *tensor.Tensor) *tensor.Tensor {
	const group = 32
	var q *tensor.Tensor
	for lo := 0; lo < a.Dim(0); lo += group {
		b := a.Slice(0, lo, min(lo+group, a.Dim(0)))
		if q == nil {
			q = gramSchmidt(b)
			continue
		}
		for range 2 {
			b = b.Sub(b.MatMul(q.Transpose(0, 1)).MatMul(q))
		}
		q = tensor.Cat(0, q, gramSchmidt(b))
	}
	return q
}

// gramSchmidt makes rows orthonormal.
func gramSchmidt(a *tensor.Tensor) *tensor.Tensor {
	n, width := a.Dim(0), a.Dim(1)
	v := a.Floats()
	row := func(i int) []float64 { return v[i*width : (i+1)*width] }
	dot := func(x, y []float64) (sum float64) {
		for i := range x {
			sum += x[i] * y[i]
		}
		return sum
	}
	for i := range n {
		x := row(i)
		for j := range 2 * i { // twice, for rounding
			y := row(j % i)
			f := dot(x, y)
			for k := range x {
				x[k] -= f * y[k]
			}
		}
		f := 1 / max(math.Sqrt(dot(x, x)), math.SmallestNonzeroFloat64)
		for k := range x {
			x[k] *= f
		}
	}
	return tensor.From(a.Env(), v, n, width)
}

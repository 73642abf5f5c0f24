package nn

import (
	"cmp"
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// ReLU is max(x, 0).
type ReLU struct{}

// Forward applies it.
func (ReLU) Forward(x *tensor.Tensor) *tensor.Tensor { return x.ReLU() }

// GELU is x·Φ(x), Φ the normal distribution function.
type GELU struct{}

// Forward applies it.
func (GELU) Forward(x *tensor.Tensor) *tensor.Tensor { return x.GELU() }

// GELUTanh is GELU's approximation by tanh, as GPT-2 has it.
type GELUTanh struct{}

// Forward applies it.
func (GELUTanh) Forward(x *tensor.Tensor) *tensor.Tensor { return x.GELUTanh() }

// SiLU is x·sigmoid(x).
type SiLU struct{}

// Forward applies it.
func (SiLU) Forward(x *tensor.Tensor) *tensor.Tensor { return x.SiLU() }

// Tanh is the hyperbolic tangent.
type Tanh struct{}

// Forward applies it.
func (Tanh) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Tanh() }

// Sigmoid is 1/(1+e⁻ˣ).
type Sigmoid struct{}

// Forward applies it.
func (Sigmoid) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Sigmoid() }

// Softmax is eˣ over its sum along the last dimension.
type Softmax struct{}

// Forward applies it.
func (Softmax) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) }

// Flatten joins all dimensions but the first: [n, ...] to [n, size].
type Flatten struct{}

// Forward applies it.
func (Flatten) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Flatten(1) }

// Dropout zeroes each element with probability P while training, and scales the rest by 1/(1-P).
type Dropout struct{ P float64 }

// Forward applies it.
func (l Dropout) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Dropout(l.P) }

// over is x where it is above a bound, else what below makes of it.
func over(x *tensor.Tensor, bound float64, below func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(x.Gt(number(x, bound)), x, below(x))
	})
}

// LeakyReLU is x above 0 and Slope·x below.
type LeakyReLU struct{ Slope float64 } // 0 means 0.01

// Forward applies it.
func (l LeakyReLU) Forward(x *tensor.Tensor) *tensor.Tensor {
	slope := cmp.Or(l.Slope, 0.01)
	return over(x, 0, func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(slope) })
}

// PReLU is x above 0 and below it x times a learned slope: one, or one per channel of [n, c, ...].
type PReLU struct {
	Weight *tensor.Tensor `nn:"weight"` // [1] or [c]
}

// NewPReLU makes n slopes of 0.25.
func NewPReLU(env *tensor.Env, n int) *PReLU { return &PReLU{full(env, 0.25, n)} }

// Forward applies it.
func (l *PReLU) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	n := l.Weight.Size()
	if n != 1 && (in.x.Rank() < 2 || in.x.Dim(1) != n) {
		tensor.Raise("nn.PReLU", "values are [batch, channels, ...]", "%d slopes for values %v", n, x.Shape())
	}
	return in.leave(over(in.x, 0, func(x *tensor.Tensor) *tensor.Tensor {
		if n == 1 {
			return x.Mul(l.Weight.In(x.Env()).Reshape())
		}
		return x.Mul(channelwise(l.Weight, x))
	}))
}

// channelwise is w[c] as [c, 1, ...], to meet values x[n, c, ...], in whose env it is: a graph of it alone would be recorded where x
// has none.
func channelwise(w, x *tensor.Tensor) *tensor.Tensor {
	shape := make([]int, x.Rank()-1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = w.Dim(0)
	return w.In(x.Env()).Reshape(shape...)
}

// ELU is x above 0 and Alpha·(eˣ-1) below (Clevert et al., 2016).
type ELU struct{ Alpha float64 } // 0 means 1

// Forward applies it.
func (l ELU) Forward(x *tensor.Tensor) *tensor.Tensor {
	return exponential(x, cmp.Or(l.Alpha, 1), 1, 1)
}

// CELU is x above 0 and Alpha·(e^(x/Alpha)-1) below, which has no kink.
type CELU struct{ Alpha float64 } // 0 means 1

// Forward applies it.
func (l CELU) Forward(x *tensor.Tensor) *tensor.Tensor {
	a := cmp.Or(l.Alpha, 1)
	return exponential(x, a, 1, 1/a)
}

// SELU is the self-normalising λ·ELU (Klambauer et al., 2017), λ about 1.05 and Alpha about 1.67.
type SELU struct{}

// Forward applies it.
func (SELU) Forward(x *tensor.Tensor) *tensor.Tensor {
	const scale = 1.0507009873554804934193349852946
	return exponential(x, 1.6732632423543772848170429916717*scale, scale, 1)
}

// exponential is scale·x above 0 and alpha·(e^(rate·x)-1) below. What is not taken is kept from overflow.
func exponential(x *tensor.Tensor, alpha, scale, rate float64) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		above := x.Gt(number(x, 0))
		below := tensor.Where(above, number(x, 0), x).Scale(rate).Expm1().Scale(alpha)
		return tensor.Where(above, x.Scale(scale), below)
	})
}

// Softplus is log(1 + e^(Beta·x))/Beta, and x itself where Beta·x is over Threshold.
type Softplus struct {
	Beta      float64 // 0 means 1
	Threshold float64 // 0 means 20
}

// Forward applies it.
func (l Softplus) Forward(x *tensor.Tensor) *tensor.Tensor {
	beta, most := cmp.Or(l.Beta, 1), cmp.Or(l.Threshold, 20)
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		z := x.Scale(beta)
		return tensor.Where(z.Gt(number(z, most)), x, softplus(z).Scale(1/beta))
	})
}

// LogSigmoid is log σ(x), without overflow.
type LogSigmoid struct{}

// Forward applies it.
func (LogSigmoid) Forward(x *tensor.Tensor) *tensor.Tensor { return softplus(x.Neg()).Neg() }

// Mish is x·tanh(log(1+eˣ)).
type Mish struct{}

// Forward applies it.
func (Mish) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Mish() }

// Softsign is x/(1+|x|).
type Softsign struct{}

// Forward applies it.
func (Softsign) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Softsign() }

// Tanhshrink is x - tanh(x).
type Tanhshrink struct{}

// Forward applies it.
func (Tanhshrink) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.Tanh()) }

// Hardtanh limits values to [Lo, Hi]; both 0 mean -1 and 1. Unlike Clamp's its gradient is 0 at the limits.
type Hardtanh struct{ Lo, Hi float64 }

// Forward applies it.
func (l Hardtanh) Forward(x *tensor.Tensor) *tensor.Tensor {
	if l == (Hardtanh{}) {
		l = Hardtanh{-1, 1}
	}
	if l.Lo >= l.Hi {
		tensor.Raise("nn.Hardtanh", "the lower limit comes first", "limits %v and %v", l.Lo, l.Hi)
	}
	return limited(x, l.Lo, l.Hi)
}

// limited is x in [lo, hi], with the gradient 0 at both.
func limited(x *tensor.Tensor, lo, hi float64) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		low, high := number(x, lo), number(x, hi)
		return tensor.Where(x.Le(low), low, tensor.Where(x.Ge(high), high, x))
	})
}

// ReLU6 is min(max(x, 0), 6).
type ReLU6 struct{}

// Forward applies it.
func (ReLU6) Forward(x *tensor.Tensor) *tensor.Tensor { return limited(x, 0, 6) }

// Hardsigmoid is min(max(x+3, 0), 6)/6.
type Hardsigmoid struct{}

// Forward applies it.
func (Hardsigmoid) Forward(x *tensor.Tensor) *tensor.Tensor {
	return limited(x.AddScalar(3), 0, 6).Scale(1. / 6)
}

// Hardswish is x·[Hardsigmoid](x) (Howard et al., 2019).
type Hardswish struct{}

// Forward applies it.
func (Hardswish) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		zero, inner := number(x, 0), x.Mul(x.AddScalar(3)).Scale(1./6)
		return tensor.Where(x.Le(number(x, -3)), zero, tensor.Where(x.Ge(number(x, 3)), x, inner))
	})
}

// Hardshrink is 0 within ±Lambda, and x outside.
type Hardshrink struct{ Lambda float64 } // 0 means 0.5

// Forward applies it.
func (l Hardshrink) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(x.Abs().Le(number(x, cmp.Or(l.Lambda, 0.5))), number(x, 0), x)
	})
}

// Softshrink is 0 within ±Lambda, and outside x, nearer to 0 by Lambda.
type Softshrink struct{ Lambda float64 } // 0 means 0.5

// Forward applies it.
func (l Softshrink) Forward(x *tensor.Tensor) *tensor.Tensor {
	lambda := cmp.Or(l.Lambda, 0.5)
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		inner := tensor.Where(x.Lt(number(x, -lambda)), x.AddScalar(lambda), number(x, 0))
		return tensor.Where(x.Gt(number(x, lambda)), x.AddScalar(-lambda), inner)
	})
}

// Threshold is x above Bound, and Value elsewhere.
type Threshold struct{ Bound, Value float64 }

// Forward applies it.
func (l Threshold) Forward(x *tensor.Tensor) *tensor.Tensor {
	return over(x, l.Bound, func(x *tensor.Tensor) *tensor.Tensor { return number(x, l.Value) })
}

// LogSoftmax is the logarithm of [Softmax] along the last dimension.
type LogSoftmax struct{}

// Forward applies it.
func (LogSoftmax) Forward(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(-1) }

// Softmin is [Softmax] of -x along the last dimension.
type Softmin struct{}

// Forward applies it.
func (Softmin) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Neg().Softmax(-1) }

// Identity is x.
type Identity struct{}

// Forward returns x.
func (Identity) Forward(x *tensor.Tensor) *tensor.Tensor { return x }

// GLU cuts a dimension in halves a and b and gives a·Gate(b): half as many values (Dauphin et al., 2017). With the gate SiLU{}
// it is SwiGLU, with GELU{} GEGLU, with ReLU{} ReGLU, with Identity{} the bilinear one (Shazeer, 2020).
type GLU struct {
	Dim  int    // 0 means the last: that of the batch is not cut
	Gate Module // nil means Sigmoid{}
}

// Forward applies it.
func (l GLU) Forward(x *tensor.Tensor) *tensor.Tensor {
	dim := cmp.Or(l.Dim, -1)
	if x.Rank() == 0 || dim < -x.Rank() || dim >= x.Rank() || x.Dim(dim)%2 != 0 {
		tensor.Raise("nn.GLU", "give a dimension of even size", "dimension %d of values %v", dim, x.Shape())
	}
	gate := l.Gate
	if gate == nil {
		gate = Sigmoid{}
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		half := x.Split(dim, x.Dim(dim)/2, x.Dim(dim)/2)
		return half[0].Mul(gate.Forward(half[1]))
	})
}

// Dropout2d zeroes whole channels of [n, c, ...] with probability P while training, and scales the rest by 1/(1-P). It
// serves sequences, pictures and volumes alike.
type Dropout2d struct{ P float64 }

// Forward applies it.
func (l Dropout2d) Forward(x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() < 3 {
		tensor.Raise("nn.Dropout2d", "values are [batch, channels, ...]", "shape %v", x.Shape())
	}
	if !x.Env().Training() || l.P == 0 {
		return x
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		shape := []int{x.Dim(0), x.Dim(1)}
		for range x.Rank() - 2 {
			shape = append(shape, 1)
		}
		return x.Mul(x.Env().FullOf(x.DType(), 1, shape...).Dropout(l.P))
	})
}

// AlphaDropout sets values to SELU's limit with probability P while training, and keeps mean and variance of what is
// normal: dropout for [SELU] (Klambauer et al., 2017).
type AlphaDropout struct{ P float64 }

// Forward applies it.
func (l AlphaDropout) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !(l.P >= 0 && l.P < 1) {
		tensor.Raise("nn.AlphaDropout", "0 ≤ P < 1", "P %v", l.P)
	}
	if !x.Env().Training() || l.P == 0 {
		return x
	}
	const limit = -1.7580993408473766 // SELU's, at -∞
	a := 1 / math.Sqrt((1-l.P)*(1+l.P*limit*limit))
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		kept := x.Env().FullOf(x.DType(), 1, x.Shape()...).Dropout(l.P).Gt(number(x, 0))
		return tensor.Where(kept, x, number(x, limit)).Scale(a).AddScalar(-a * limit * l.P)
	})
}

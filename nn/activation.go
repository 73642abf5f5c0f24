package nn

import "github.com/warpline-ml/warpline/tensor"

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

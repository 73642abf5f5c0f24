// Package nn has layers, losses and the tools that walk a model.
//
// A model is a struct (or slice, or map) of layers with a Forward method; there is nothing to register and no base type.
// [Params], [State] and the others find its tensors by walking exported fields as encoding/json does: embedded fields and
// fields with an empty name are flattened, maps go in the order of their keys, a cycle ends where it closes. A path joins
// the names by dots. The tag gives the name and the role:
//
//	Weight *tensor.Tensor `nn:"weight"`              // a parameter, made by NewParam
//	Mean   *tensor.Tensor `nn:"running_mean,buffer"` // saved state without a gradient, made by tensor.NewBuffer
//	Mask   *tensor.Tensor `nn:"mask,transient"`      // such state, not saved
//	Inner  Module         `nn:""`                    // flattened
//	Cache  *tensor.Tensor `nn:"-"`                   // not walked
//
// A field without a tag has its Go name. Layers use the names of PyTorch's state dicts, its shapes and its default
// initialisations, drawn from the env that the constructor is given. Training or evaluation, recording and precision
// are modes of the input's env, not of the layer. A mistake panics with a [tensor.Error].
//
// Layers may be used by several goroutines as long as nothing writes to them: an optimizer, a BatchNorm in training.
package nn

import "github.com/warpline-ml/warpline/tensor"

// Module maps a value to a value.
type Module interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
}

// Sequential applies modules one after the other. Their names are their indices.
type Sequential []Module

// Forward applies the modules in order.
func (s Sequential) Forward(x *tensor.Tensor) *tensor.Tensor {
	for i, m := range s {
		if m == nil {
			tensor.Raise("nn.Sequential", "give a module, or leave it out", "module %d of %d is nil", i, len(s))
		}
		in := x
		x = m.Forward(in)
		noteElement(&s[i], in, x)
	}
	return x
}

// NewParam makes t's value a parameter: a copy in its device's root scope that gets gradients and is updated by
// optimizers.
func NewParam(t *tensor.Tensor) *tensor.Tensor { return tensor.NewParam(t) }

// uniform is a parameter uniform in [-bound, bound).
func uniform(env *tensor.Env, bound float64, shape ...int) *tensor.Tensor {
	r := env.Rand(shape...)
	return NewParam(r.ScaleInPlace(2 * bound).AddInPlace(env.Full(-bound)))
}

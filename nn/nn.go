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

import (
	"path"
	"reflect"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Module maps a value to a value.
type Module interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
}

// Func is a function as a module without parameters.
//
//	nn.Sequential{nn.Func(func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(1, 2) }), nn.NewConv1d(env, 8, 16, 3, nn.ConvConfig{})}
type Func func(x *tensor.Tensor) *tensor.Tensor

// Forward calls it.
func (f Func) Forward(x *tensor.Tensor) *tensor.Tensor { return f(x) }

// Sequential applies modules one after the other. Their names are their indices.
type Sequential []Module

// Forward applies the modules in order. What this package's own make on the way is released as soon as the next one is
// done, but for what a graph needs; the values of other modules, and those that they are given, end with their scope.
func (s Sequential) Forward(x *tensor.Tensor) *tensor.Tensor {
	if x != nil && x.Env().Parted() {
		return s.inBlocks(x)
	}
	return s.chain(x, 0, len(s))
}

// chain applies modules from one up to another.
func (s Sequential) chain(x *tensor.Tensor, from, to int) *tensor.Tensor {
	c := chain{steps: make([]func(*tensor.Tensor) *tensor.Tensor, 0, to-from)}
	for i := from; i < to; i++ {
		s.given(i)
		x = c.add(x, s.step(i), isLibrary(s[i]))
	}
	return tensor.Chain(x, c.steps...)
}

// given refuses a module that is missing.
func (s Sequential) given(i int) {
	if s[i] == nil {
		tensor.Raise("nn.Sequential", "give a module, or leave it out", "module %d of %d is nil", i, len(s))
	}
}

// chain are steps whose values nobody else finds, one after the other.
type chain struct {
	steps []func(*tensor.Tensor) *tensor.Tensor
}

// add appends a step of the library's own; another one is done at once, outside of chains, after those before it.
func (c *chain) add(x *tensor.Tensor, step func(*tensor.Tensor) *tensor.Tensor, own bool) *tensor.Tensor {
	if own {
		c.steps = append(c.steps, step)
		return x
	}
	x = step(tensor.Surface(tensor.Chain(x, c.steps...)))
	c.steps = c.steps[:0]
	return x
}

// step is module i.
func (s Sequential) step(i int) func(*tensor.Tensor) *tensor.Tensor {
	return func(x *tensor.Tensor) *tensor.Tensor {
		in := s.enter(i, x)
		return in.leave(s[i].Forward(in.x))
	}
}

// library is the folder of this package, and of those beside it whose modules keep no value that they compute.
var library = path.Dir(reflect.TypeFor[Sequential]().PkgPath())

// isLibrary tells whether m is of this package or of package model: such a module keeps no value that it computes, and
// lets no other see one without taking it out of its chain. What a [Func] does is the program's.
func isLibrary(m Module) bool {
	if _, own := m.(Func); own {
		return false
	}
	return isOf(m, "/nn") || isOf(m, "/model")
}

// isOf tells whether m is of a package of the library.
func isOf(m Module, folder string) bool {
	t := reflect.TypeOf(m)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == library+folder
}

// NewParam makes t's value a parameter: a copy in its device's root scope that gets gradients and is updated by
// optimizers.
func NewParam(t *tensor.Tensor) *tensor.Tensor { return tensor.NewParam(t) }

// uniform is a parameter uniform in [-bound, bound).
func uniform(env *tensor.Env, bound float64, shape ...int) *tensor.Tensor {
	return env.Tidy(func(e *tensor.Env) *tensor.Tensor {
		return NewParam(e.Rand(shape...).ScaleInPlace(2 * bound).AddInPlace(e.Full(-bound)))
	})
}

// full is a parameter of one value.
func full(env *tensor.Env, v float64, shape ...int) *tensor.Tensor {
	return env.Tidy(func(e *tensor.Env) *tensor.Tensor { return NewParam(e.Full(v, shape...)) })
}

// state is a buffer of one value.
func state(env *tensor.Env, dt dtype.DType, v float64, shape ...int) *tensor.Tensor {
	return env.Tidy(func(e *tensor.Env) *tensor.Tensor { return tensor.NewBuffer(e.FullOf(dt, v, shape...)) })
}

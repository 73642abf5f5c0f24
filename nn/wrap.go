package nn

import "github.com/warpline-ml/warpline/tensor"

// wrapped is a module run in another way. Its names are the module's own.
type wrapped struct {
	M     Module `nn:""`
	run   func(m Module, x *tensor.Tensor) *tensor.Tensor
	again bool // it is recomputed
}

// Forward runs the module.
func (w wrapped) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !isLibrary(w.M) {
		x = tensor.Surface(x)
	}
	return w.run(w.M, x)
}

// Frozen runs m with its parameters as constants. Gradients still flow through it to an input that carries a graph; a
// leaf is a constant too.
func Frozen(m Module) Module {
	return wrapped{M: m, run: func(m Module, x *tensor.Tensor) *tensor.Tensor {
		return x.Env().Do(func(e *tensor.Env) *tensor.Tensor { return m.Forward(x.In(e.NoGrad())) })
	}}
}

// EvalMode runs m as in evaluation: without dropout, with running statistics.
func EvalMode(m Module) Module {
	return wrapped{M: m, run: func(m Module, x *tensor.Tensor) *tensor.Tensor {
		return x.Env().Do(func(e *tensor.Env) *tensor.Tensor { return m.Forward(x.In(e.Eval())) })
	}}
}

// Recompute runs m a second time in Backward instead of keeping the values that its gradient needs. The numbers are the
// same bit for bit, dropout included, and running statistics are written once.
func Recompute(m Module) Module {
	return wrapped{M: m, again: true, run: func(m Module, x *tensor.Tensor) *tensor.Tensor { return tensor.Recompute(x, m.Forward) }}
}

// Block runs m as a block of a model: again in Backward, like [Recompute], where x's env asks for that by
// [tensor.Env.Recompute]. Models whose own Forward goes through their blocks call it for each; [Sequential] does.
func Block(m Module, x *tensor.Tensor) *tensor.Tensor { return Sequential{m}.Forward(x) }

package train

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Params is what a run keeps the parameters of two or more dimensions in; biases and the gains of norms are few, and stay
// float32. The zero value is [ParamsF32].
type Params string

// The values of Params: float32; bfloat16, which loses updates below half a unit of the last place; and bfloat16 that does not
// lose them, see [optim.Rounding].
const (
	ParamsF32        Params = "f32"
	ParamsBF16       Params = "bf16"
	ParamsKahan      Params = "bf16-kahan"
	ParamsStochastic Params = "bf16-stochastic"
)

// AllParams are the values of [Params].
var AllParams = []string{string(ParamsF32), string(ParamsBF16), string(ParamsKahan), string(ParamsStochastic)}

// ParseParams reads a value of [Params].
func ParseParams(text string) (Params, error) {
	return word("params", text, AllParams, ParamsF32)
}

// narrow tells parameters in 16 bits.
func (p Params) narrow() bool { return p != "" && p != ParamsF32 }

// put makes the parameters of a model bfloat16.
func (p Params) put(m nn.Module) {
	for _, w := range nn.Params(m) {
		if w.Rank() > 1 {
			w.Env().NoGrad().Tidy(func(env *tensor.Env) *tensor.Tensor {
				w.Replace(w.In(env).Cast(dtype.BF16))
				return nil
			})
		}
	}
}

// policy is env for scoring: in float32, unless the parameters are not.
func (p Params) policy(env *tensor.Env) *tensor.Env {
	if p.narrow() {
		return env.Autocast(dtype.BF16)
	}
	return env
}

// rounding is how the optimizer rounds them.
func (p Params) rounding() optim.Rounding {
	switch p {
	case ParamsKahan:
		return optim.Kahan
	case ParamsStochastic:
		return optim.Stochastic
	}
	return optim.Nearest
}

// contradicts refuses what parameters in 16 bits cannot have beside them.
func (p Params) contradicts(c *Config) error {
	if _, err := ParseParams(string(p)); err != nil || !p.narrow() {
		return err
	}
	switch {
	case c.AMP != AMPBF16:
		return fail("give --amp bf16 too", "--params %s needs products in bfloat16, and --amp is %s", p, c.AMP)
	case c.Average > 0:
		return fail("give --average 0", "--params %s and a running mean of them: bfloat16 has no room for what --average %v takes in", p, c.Average)
	case p == ParamsStochastic && c.Capture:
		return fail("take bf16-kahan, or leave --capture out", "--params %s draws by the number of the step, and each run of a captured one would draw the same", p)
	}
	return nil
}

package optim

import (
	"iter"
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// RpropConfig configures [Rprop]. Of LR, Less, More, Least and Most zero means PyTorch's default, given in the comments.
type RpropConfig struct {
	LR          float64 // the first step of every weight: 1e-2
	Less, More  float64 // what a step is multiplied by where the gradient changed its sign, and where it kept it: 0.5, 1.2
	Least, Most float64 // bounds of steps: 1e-6, 50
	WeightDecay float64 // is added to the gradient, which PyTorch's Rprop cannot: 0
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Rprop goes by the sign of each weight's gradient, with a step of the weight's own (Riedmiller and Braun, 1993). It wants gradients of all
// data: the noise of batches changes signs.
//
//	s = s·More where g·g₋ > 0, s·Less where g·g₋ < 0, within Least and Most
//	w = w - s·sign(g)          (where the sign has changed the weight rests, and the next step takes it as new)
//
// The learning rate is asked for in a parameter's first step only, but for 0, with which weights stay.
type Rprop struct{ *core }

// NewRprop updates the given parameters.
func NewRprop(params iter.Seq2[string, *tensor.Tensor], c RpropConfig) *Rprop {
	const op = "optim.NewRprop"
	less, more := optional(c.Less, 0.5), optional(c.More, 1.2)
	check(op, "Less", less, math.SmallestNonzeroFloat64, 1)
	check(op, "More", more, math.Nextafter(1, 2), math.Inf(1))
	least := checked(op, "Least", optional(c.Least, 1e-6), math.Inf(1))
	most := optional(c.Most, 50)
	check(op, "Most", most, least, math.Inf(1))
	return &Rprop{ruled{op: op, rule: "rprop", params: params, settings: settings{optional(c.LR, 1e-2), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: plain("prev", "step_size"), values: []float64{less, more, least, most}, coupled: true,
		maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed}.core()}
}

package optim

import (
	"iter"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Adam8bitConfig configures [Adam8bit]. Of LR, Beta1, Beta2, Eps, WeightDecay and Least zero means the default, given in the comments,
// and a negative number means 0.
type Adam8bitConfig struct {
	LR          float64 // 1e-3
	Beta1       float64 // 0.9
	Beta2       float64 // 0.999
	Eps         float64 // 1e-8
	WeightDecay float64 // 0.01
	Least       int     // parameters with fewer elements keep whole moments: 4096
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Adam8bit is AdamW whose moments take a byte each: a dynamic code that reaches over seven powers of ten, times the largest
// value of each block of 256 (Dettmers et al., 2022). It is computed in float32.
type Adam8bit struct{ *core }

const codeBlock = 256

// NewAdam8bit updates the given parameters.
func NewAdam8bit(params iter.Seq2[string, *tensor.Tensor], c Adam8bitConfig) *Adam8bit {
	const op = "optim.NewAdam8bit"
	o := newCore(op, params, settings{optional(c.LR, 1e-3), optional(c.WeightDecay, 0.01), c.Clip, c.Rule})
	beta1, beta2 := checked(op, "Beta1", optional(c.Beta1, 0.9), 1), checked(op, "Beta2", optional(c.Beta2, 0.999), 1)
	eps, least := checked(op, "Eps", optional(c.Eps, 1e-8), math.Inf(1)), whole(c.Least, 4096)
	o.maximize, o.tables = c.Maximize, [][]float64{append(dynamicCodes(false), dynamicCodes(true)...)}
	o.keeps(func(s *state) []kind {
		n := elements(s.p)
		if n < least || n == 0 {
			return plain("exp_avg", "exp_avg_sq")
		}
		s.family = "codes"
		blocks := []int{(n + codeBlock - 1) / codeBlock}
		return []kind{{name: "state1", dt: dtype.U8, shape: s.p.Shape(), value: 127}, {name: "state2", dt: dtype.U8, shape: s.p.Shape()},
			{name: "absmax1", dt: dtype.F32, shape: blocks}, {name: "absmax2", dt: dtype.F32, shape: blocks}}
	})
	step, small := tensor.AdamWStep{Beta1: beta1, Beta2: beta2, Eps: eps}, adam(tensor.AdamWStep{Beta1: beta1, Beta2: beta2, Eps: eps})
	o.update = func(l *ledger, b *batch) {
		if b.states[0].family == "codes" {
			s := step
			s.LR, s.Skip, s.Scale, s.WeightDecay = l.rate(b), l.skip, b.rates.Scale, b.rates.WeightDecay
			codes := tensor.Codes{First: b.keep[0], Second: b.keep[1], Largest1: b.keep[2], Largest2: b.keep[3]}
			tensor.Adam8bitInPlace(s, l.scale, l.tables[0], b.p, b.g, codes, b.counts)
		} else {
			small(l, b)
		}
	}
	o.rounds(op, c.Rounding, c.Seed)
	return &Adam8bit{o}
}

// dynamicCodes are the values of codes 0 to 255, rising: for each of seven powers of ten, fractions from 0.1 to 1 of it, twice as
// many as of the power below; 0; and 1. Signed ones have half as many on each side.
func dynamicCodes(signed bool) []float64 {
	list := []float64{0, 1}
	for i := range 7 {
		n, power := 1<<(i+1), math.Pow(10, float64(i-6))
		if signed {
			n /= 2
		}
		for j := range n {
			v := power * (0.1 + 0.9*(float64(j)+0.5)/float64(n))
			if list = append(list, v); signed {
				list = append(list, -v)
			}
		}
	}
	slices.Sort(list)
	return list
}

package optim

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// adam is the fused update of parameters that another optimizer leaves to AdamW; their state is two moments.
func adam(step tensor.AdamWStep) func(l *ledger, b *batch) {
	return func(l *ledger, b *batch) {
		s := step
		s.LR, s.Skip, s.Scale, s.WeightDecay = l.rate(b), l.skip, b.rates.Scale, b.rates.WeightDecay
		tensor.AdamWInPlace(s, l.scale, b.p, b.g, b.keep[0], b.keep[1], b.counts)
	}
}

// elements is the number of a tensor's.
func elements(t *tensor.Tensor) int {
	n := 1
	for _, d := range t.Shape() {
		n *= d
	}
	return n
}

// positive is a setting from above 0.
func positive(op, what string, v float64) float64 {
	check(op, what, v, math.SmallestNonzeroFloat64, math.Inf(1))
	return v
}

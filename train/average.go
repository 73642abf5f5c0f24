package train

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// average is a running mean of a model's weights: a = d·a + (1-d)·w after each step. In the first steps d is smaller,
// (1+t)/(10+t) for step t from 0, so that the start is soon forgotten. Averaging takes the noise of a constant learning
// rate out of the weights (Polyak and Juditsky, 1992).
type average struct {
	model nn.Module
	decay float64
	pairs []pair
}

// pair is a tensor and its mean.
type pair struct {
	from, to *tensor.Tensor
	buffer   bool // copied, not averaged
}

// newAverage starts with the model's weights. Without a decay there is none.
func newAverage(m nn.Module, decay float64) *average {
	if decay == 0 {
		return nil
	}
	a := &average{model: nn.Clone(m), decay: decay}
	for from, to := range nn.Zip(m, a.model) {
		a.pairs = append(a.pairs, pair{from, to, !from.IsParam()})
	}
	return a
}

// update takes in the weights after step t.
func (a *average) update(t int) {
	if a == nil {
		return
	}
	d := min(a.decay, float64(1+t)/float64(10+t))
	for _, p := range a.pairs {
		if p.buffer {
			p.to.CopyInPlace(p.from)
		} else {
			p.to.LerpInPlace(p.from, 1-d)
		}
	}
}

// or is the averaged model, or m when there is none.
func (a *average) or(m nn.Module) nn.Module {
	if a == nil {
		return m
	}
	return a.model
}

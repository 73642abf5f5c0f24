package train

import (
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/nn"
)

// average is a running mean of a model's weights: of its own at first little is kept, (1+t)/(10+t) in step t from 0, so that the
// start is soon forgotten, and decay of it later.
type average struct {
	mean  *nn.Average[nn.Module]
	decay float64
	own   averager // nil: the mean is computed here
}

// averager is an optimizer that has the mean.
type averager interface{ Averaged(f func()) }

// newAverage starts with the model's weights. A run that asks for none has none.
func newAverage(m nn.Module, c *Config) *average {
	if c.Average == 0 && !recipe.OptimizerOf(c.Optimizer).Averages {
		return nil
	}
	return &average{mean: nn.NewEMA(m, c.Average), decay: c.Average}
}

// update takes in the weights after step t.
func (a *average) update(t int) {
	if a != nil && a.own == nil {
		a.mean.UpdateBy(1 - min(a.decay, float64(1+t)/float64(10+t)))
	}
}

// or is the averaged model, or m when there is none.
func (a *average) or(m nn.Module) nn.Module {
	if a == nil {
		return m
	}
	if a.own != nil {
		a.own.Averaged(func() { a.mean.UpdateBy(1) })
	}
	return a.mean.Model
}

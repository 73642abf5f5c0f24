package optim

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestMuonOfManySteps: the iteration does not lose what its factor, kept apart, makes small. Singular values come near 1 by any number of
// steps; of a matrix of 6 rows the norm of the update is that of six such.
func TestMuonOfManySteps(t *testing.T) {
	env := freshEnv(t)
	for _, steps := range []int{5, 20, 60, 99} {
		p := tensor.NewParam(env.Zeros(6, 9))
		opt := NewMuon(only(p), MuonConfig{LR: 1, Steps: steps, WeightDecay: -1})
		e, scope := env.Scope()
		p.In(e).Mul(env.Seed(5).Randn(6, 9)).Sum().Backward()
		opt.Step()
		scope.End()
		if got := p.Detach().Norm().Item() / math.Sqrt(6); !(got > 0.6 && got < 1.3) {
			t.Errorf("%d steps: singular values of %v", steps, got)
		}
	}
}

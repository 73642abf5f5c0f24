package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// doubled is a module of the program's own.
type doubled struct {
	Inner *nn.Linear `nn:"inner"`
}

func (d *doubled) Forward(x *tensor.Tensor) *tensor.Tensor { return d.Inner.Forward(x).Scale(2) }

// TestOnForward: modules come with their paths in the order in which they end, with what they give, on the model alone, and again where
// Backward runs them again; not behind stop.
func TestOnForward(t *testing.T) {
	env := tensor.Best()
	model := nn.Sequential{nn.NewLinear(env, 4, 4), nn.ReLU{}, &doubled{nn.NewLinear(env, 4, 4)}, nn.Recompute(nn.Sequential{nn.NewLinear(env, 4, 2), nn.Tanh{}})}
	other := nn.Sequential{nn.NewLinear(env, 4, 4)}
	var seen []string
	stop := nn.OnForward(model, func(path string, layer any, y *tensor.Tensor) {
		again := ""
		if y.Env().Recomputing() {
			again = " again"
		}
		if y.Mul(y).Sum().Item() < 0 { // it may compute
			t.Error("squares below 0")
		}
		seen = append(seen, fmt.Sprintf("%s %T %v%s", path, layer, y.Shape(), again))
	})
	other.Forward(env.Ones(3, 4))
	model.Forward(env.Ones(3, 4)).Sum().Backward()
	stop()
	model.Forward(env.Ones(3, 4))
	want := []string{"0 *nn.Linear [3 4]", "1 nn.ReLU [3 4]", "2.inner *nn.Linear [3 4]", "2 *nn_test.doubled [3 4]", "3.0 *nn.Linear [3 2]", "3.1 nn.Tanh [3 2]", "3.0 *nn.Linear [3 2] again", "3.1 nn.Tanh [3 2] again"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L27 shows three modes. They belong to the data: a model has none that could be left on.
func L27(env *tensor.Env, n Numbers, w io.Writer) error {
	// A model with dropout, and one input for it.
	model := nn.Sequential{nn.NewLinear(env, 8, 8), nn.Dropout{P: 0.5}, nn.NewLinear(env, 8, 1)}
	x := env.Ones(n["batch"], 8)
	// NoGrad records nothing; Eval switches dropout off and takes the running statistics of norms.
	quiet := env.NoGrad().Eval()
	first, second := model.Forward(x.In(quiet)), model.Forward(x.In(quiet))
	fmt.Fprintln(w, "scored twice, equal:", first.Sub(second).Abs().Max().Item() == 0, "recorded:", first.Recorded())
	// Grad switches recording on again inside, for a gradient with respect to an input.
	loud := quiet.Grad()
	leaf := x.In(loud).RequireGrad()
	g := tensor.Grad(model.Forward(leaf).Sum(), leaf)[0]
	fmt.Fprintln(w, "a gradient with respect to the input:", g.Shape())
	return nil
}

// L27Wrong scores a model as it trains.
func L27Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// A model with dropout, and one input for it.
	model := nn.Sequential{nn.NewLinear(env, 8, 8), nn.Dropout{P: 0.5}, nn.NewLinear(env, 8, 1)}
	x := env.Ones(n["batch"], 8)
	// The mistake: NoGrad alone. Dropout still drops, so that the same input has another score each time.
	e := env.NoGrad()
	first, second := model.Forward(x.In(e)), model.Forward(x.In(e))
	fmt.Fprintln(w, "scored twice, equal:", first.Sub(second).Abs().Max().Item() == 0)
	return nil
}

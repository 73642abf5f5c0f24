package examples

import (
	"fmt"
	"io"
	"math"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// EMA keeps an exponential moving average of the weights, and a running sum of losses by writing in place. Nothing is
// recorded into what stays, so no mode is needed.
func EMA(env *tensor.Env, steps int, w io.Writer) error {
	model := nn.NewLinear(env, 4, 3)
	average := nn.NewEMA(model, 0.99)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1e-2})
	total := env.Zeros()
	want, share := 0., 1. // the first update takes the weights as they are
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
		average.Update()
		total.AddInPlace(loss.Detach())
		want, share = want+share*(model.Weight.Floats()[0]-want), 0.01 //warpline:ok R13
	}
	off := math.Abs(average.Model.Weight.Floats()[0] - want)
	fmt.Fprintf(w, "the average is right to 1e-4: %v; losses add up to a finite number: %v\n", off < 1e-4, !math.IsNaN(total.Item()))
	return nil
}

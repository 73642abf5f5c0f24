package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// GradientPenalty trains a critic whose gradient with respect to its input shall have length 1: a second derivative.
func GradientPenalty(env *tensor.Env, steps int, w io.Writer) error {
	critic := nn.Sequential{nn.NewLinear(env, 4, 8), nn.Tanh{}, nn.NewLinear(env, 8, 1)}
	opt := optim.NewAdam(nn.Params(critic), optim.AdamWConfig{LR: 1e-2})
	var last *tensor.Pending
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 6, Steps: steps}) {
		if err != nil {
			return err
		}
		x := b.X.RequireGrad()
		y := critic.Forward(x)
		slope := tensor.GradGraph(y.Sum(), x)[0]
		penalty := squares(slope.Square().Sum(1).Sqrt(), 1)
		y.Mean().Add(penalty.Scale(10)).Backward()
		opt.Step()
		last = penalty.Later()
	}
	fmt.Fprintf(w, "slopes are within 0.3 of 1: %v\n", last.Value() < 0.09)
	return nil
}

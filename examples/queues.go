package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Queues trains on one queue and scores a copy of the model on another, which the device may run side by side. The loss
// of a step is asked for without waiting and read a step later.
func Queues(env *tensor.Env, steps int, w io.Writer) error {
	model := mlp(env, 4, 16, 3)
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	side := env.NewQueue()

	var loss *tensor.Pending
	var last, score float64
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		l := nn.CrossEntropy(model.Forward(b.X), b.Y)
		l.Backward()
		opt.Step()
		if loss != nil {
			last = loss.Value() // of the step before: it has been there for long
		}
		loss = l.Later()

		// What crosses from one queue to the other is waited for there, not here.
		e := b.Env.On(side).NoGrad()
		right := model.Forward(b.X.In(e)).ArgMax(1).Eq(b.Y.In(e))
		score = right.Cast(dtype.F32).Mean().Item() //warpline:ok R13
	}
	fmt.Fprintf(w, "loss below 0.1: %v, last batch right: %.0f %%\n", last < 0.1, 100*score)
	return nil
}

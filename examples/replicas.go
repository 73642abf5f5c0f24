package examples

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Replicas trains two copies of a model in two goroutines: each has its own queue and its own random numbers.
func Replicas(env *tensor.Env, steps int, w io.Writer) error {
	var wg sync.WaitGroup
	losses, errs := make([]float64, 2), make([]error, 2)
	for r := range 2 {
		wg.Go(func() { losses[r], errs[r] = replica(env.Replica(r), steps) })
	}
	wg.Wait()
	fmt.Fprintf(w, "the replicas went different ways: %v\n", losses[0] != losses[1])
	return errors.Join(errs...)
}

func replica(env *tensor.Env, steps int) (float64, error) {
	var last *tensor.Pending
	model := nn.Sequential{nn.NewLinear(env, 4, 8), nn.ReLU{}, nn.Dropout{P: 0.1}, nn.NewLinear(env, 8, 3)}
	opt := optim.NewAdam(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return 0, err
		}
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
		last = loss.Later()
	}
	return last.Value(), nil
}

package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Readme trains a classifier: the README's program on smaller data.
func Readme(env *tensor.Env, steps int, w io.Writer) error {
	train, test := blobs(300), blobs(90)
	model := nn.Sequential{nn.Flatten{}, nn.NewLinear(env, 4, 16), nn.ReLU{}, nn.NewLinear(env, 16, 3)}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	for b, err := range data.Batches(env, train, data.Config{Size: 10, Shuffle: true, Steps: steps}) {
		if err != nil {
			return err
		}
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
	}
	fmt.Fprintf(w, "accuracy %.2f %%\n", 100*metric.Accuracy(env, model, test))
	return nil
}

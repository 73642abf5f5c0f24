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

// split is a model whose second part is on another device.
type split struct {
	Here, There nn.Sequential
	there       *tensor.Env
}

func (s *split) Forward(x *tensor.Tensor) *tensor.Tensor {
	return s.There.Forward(s.Here.Forward(x).To(s.there)).To(x.Env())
}

// SplitModel trains a model that is spread over a device and the next of its kind: values cross there and back, and
// gradients cross the other way. Where there is no next device, both parts are on the one.
func SplitModel(env *tensor.Env, steps int, w io.Writer) error {
	other := neighbour(env)
	model := &split{mlp(env, 4, 16, 8), append(nn.Sequential{nn.ReLU{}}, mlp(other, 8, 8, 3)...), other}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-2, Clip: 10})
	for b, err := range data.Batches(env, blobs(300), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
		opt.Step()
	}
	fmt.Fprintf(w, "accuracy above 90 %%: %v\n", metric.Accuracy(env, model, blobs(90)) > 0.9)
	return nil
}

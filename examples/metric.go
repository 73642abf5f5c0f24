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

// MetricAfterStep reads the logits after Backward and Step: the head of the graph stays until the batch ends. A hidden
// value does not, and says so.
func MetricAfterStep(env *tensor.Env, steps int, w io.Writer) error {
	model := mlp(env, 4, 16, 3)
	opt := optim.NewAdam(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	hits, n := 0.0, 0
	var released error
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		hidden := model[0].Forward(b.X)
		logits := model[2].Forward(hidden.ReLU())
		nn.CrossEntropy(logits, b.Y).Backward()
		opt.Step()
		hits += metric.Correct(logits, b.Y).Item() //warpline:ok R13
		n += b.Y.Size()
		_, released = b.Env.Try(func(*tensor.Env) *tensor.Tensor { return hidden.Scale(1) })
	}
	fmt.Fprintf(w, "more than half were right: %v\nreading a hidden value: %v\n", hits > float64(n)/2, released)
	return nil
}

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

// FrozenBackbone trains a head on top of a network whose parameters stay as they are.
func FrozenBackbone(env *tensor.Env, steps int, w io.Writer) error {
	backbone, head := mlp(env, 4, 16, 8), nn.NewLinear(env, 8, 3)
	model := nn.Sequential{nn.Frozen(backbone), nn.EvalMode(nn.Dropout{P: 0.5}), nn.ReLU{}, head}
	opt := optim.NewAdam(nn.Params(head), optim.AdamWConfig{LR: 1e-2})
	before := backbone[0].(*nn.Linear).Weight.Floats()
	for b, err := range data.Batches(env, blobs(300), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
		opt.Step()
	}
	changed := 0
	for i, v := range backbone[0].(*nn.Linear).Weight.Floats() {
		if v != before[i] {
			changed++
		}
	}
	fmt.Fprintf(w, "accuracy above 90 %%: %v; weights changed in the backbone: %d\n", metric.Accuracy(env, model, blobs(90)) > 0.9, changed)
	return nil
}

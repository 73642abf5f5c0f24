package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Distillation teaches a small network to imitate a frozen one. The teacher runs in a block without recording, which
// leaves nothing behind but its answer; no mode leaks out of the block.
func Distillation(env *tensor.Env, steps int, w io.Writer) error {
	teacher, student := mlp(env, 4, 16, 3), mlp(env, 4, 16, 3)
	opt := optim.NewAdam(nn.Params(student), optim.AdamWConfig{LR: 1e-2})
	var first, last *tensor.Pending
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		want := b.Env.Do(func(env *tensor.Env) *tensor.Tensor { return teacher.Forward(b.X.In(env.NoGrad())) })
		loss := nn.MSE(student.Forward(b.X), want)
		loss.Backward()
		opt.Step()
		if last = loss.Later(); first == nil {
			first = last
		}
	}
	fmt.Fprintf(w, "the student came closer: %v\n", last.Value() < first.Value()/5)
	return nil
}

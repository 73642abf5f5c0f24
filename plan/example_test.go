package plan_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// An out-of-memory that is caught, explained by running the program on a device that computes nothing, and got out of.
func ExampleExplain() {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		log.Fatal(err)
	}
	env.Device().SetLimit(1 << 20)
	train := func(env *tensor.Env, s plan.Setting) error {
		model := nn.Sequential{nn.NewLinear(env, 32, 64), nn.GELU{}, nn.NewLinear(env, 64, 4)}
		opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3})
		for b, err := range data.Batches(env, samples(2*s.Batch), data.Config{Size: s.Batch, Steps: 2}) {
			if err != nil {
				return err
			}
			for part := range data.Split(b, s.Parts) {
				nn.CrossEntropy(model.Forward(part.X), part.Y).Scale(part.Fraction()).Backward()
			}
			opt.Step()
		}
		return nil
	}
	run := func(s plan.Setting) error {
		_, err := tensor.Try(env, func(env *tensor.Env) error { return train(env, s) })
		return err
	}
	var oom *tensor.OOMError
	if err := run(plan.Setting{Batch: 2000, Parts: 1}); !errors.As(err, &oom) {
		log.Fatal(err)
	}
	if err := plan.Explain(oom, plan.Program{Run: train, Batch: 2000, Smaller: "Size: %d", Split: "data.Split(b, %d)"}); err != nil {
		log.Fatal(err)
	}
	oom.WriteText(os.Stderr) // one screen
	fmt.Println("what to do:", oom.Levers[0].Flag)
	fmt.Println("in parts:", run(plan.Setting{Batch: 2000, Parts: 4}))
	// Output:
	// what to do: data.Split(b, 4)
	// in parts: <nil>
}

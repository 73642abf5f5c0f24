package prof_test

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// watched is a layer that looks at what it made, for which the host waits each time.
type watched struct{ *nn.Linear }

func (w watched) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := w.Linear.Forward(x)
	if y.Mean().Item() > 1e3 { // the mistake
		log.Print("large values")
	}
	return y
}

// A model that looks at what its layers make, on a simulated H100. The profile names the line.
func ExampleProfiler() {
	env, err := tensor.Open("sim:h100-80")
	if err != nil {
		log.Fatal(err)
	}
	model := nn.Sequential{watched{nn.NewLinear(env, 64, 64)}, nn.ReLU{}, watched{nn.NewLinear(env, 64, 64)}, nn.ReLU{}, watched{nn.NewLinear(env, 64, 10)}}
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})

	p := prof.New(prof.Config{Skip: 2, Warmup: 1, Active: 3, Repeat: 1})
	for b, err := range data.Batches(env.Profiled(p), data.Source[data.Pair](noise{}), data.Config{Size: 64, Steps: 6}) {
		if err != nil {
			log.Fatal(err)
		}
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
		p.Step()
	}
	for _, f := range p.Last().Findings() {
		if f.Name == "waits-in-loop" {
			fmt.Println(f.Title, f.Line)
		}
	}
	// Output:
	// the host waits for the device 3 times a step (read) example_test.go:19
}

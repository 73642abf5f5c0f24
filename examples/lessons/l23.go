package lessons

import (
	"bytes"
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// L23 profiles windows of a training: one step passed over, one to warm up, some recorded, and again.
func L23(env *tensor.Env, n Numbers, w io.Writer) error {
	// A small model, its optimizer and a batch.
	model := nn.Sequential{nn.NewLinear(env, 32, 64), nn.ReLU{}, nn.NewLinear(env, 64, 3)}
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.01})
	x, y := env.Randn(16, 32), env.RandInt(0, 3, 16)
	// How many windows have ended.
	rounds := 0
	// Wait is not observed at all; Warmup is observed and thrown away, since first steps pay for what is made once.
	p := prof.New(prof.Config{Wait: 1, Warmup: 1, Active: n["active"], Repeat: n["rounds"], Memory: true, Ready: func(*prof.Profile) { rounds++ }})
	watched := env.Profiled(p)
	for range n["rounds"] * (2 + n["active"]) {
		nn.CrossEntropy(model.Forward(x.In(watched)), y).Backward()
		opt.Step()
		// Step tells the profiler that one of the program's steps is over.
		p.Step()
	}
	p.Stop()
	// A table by operation, the most of its own time first, ten rows of it; by module and by line there are others.
	var table bytes.Buffer
	if err := p.Last().WriteTable(&table, prof.Table{By: prof.Op, Sort: "self", Top: 10}); err != nil {
		return err
	}
	// A trace for ui.perfetto.dev and chrome://tracing.
	var trace bytes.Buffer
	if err := p.Last().Trace(&trace, "trace.json"); err != nil {
		return err
	}
	products := bytes.Contains(table.Bytes(), []byte("linear"))
	fmt.Fprintf(w, "%d windows; products are in the table: %v, the trace has events: %v\n", rounds, products, trace.Len() > 1000)
	return nil
}

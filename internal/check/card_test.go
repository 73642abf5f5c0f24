package check

import (
	"os"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ledger"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestCard is a dress rehearsal of what is run on a card: each part on cuda:0 through a C library, with a simulated card
// of the kind behind it whose work takes effect as late as it may.
func TestCard(t *testing.T) {
	if !testutil.Alone(t) { // a process opens its driver once
		return
	}
	sim, err := simcuda.New(simcuda.Config{Card: "h100-80", LateEffects: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(libcuda.PathEnv, shimtest.Install(t, sim.API()))
	name, dev, err := open("cuda:0")
	if err != nil {
		t.Fatal(err)
	}
	var rep Report
	rep.run(t.Context(), append(compiling(name, dev), promises(dev)...), patience, nil)
	if rep.Failed > 0 || rep.Cases < 200 || len(together(name, dev)) > 0 {
		t.Errorf("%s\n%+v", rep.Text(100), together(name, dev))
	}
	ops, err := Run(t.Context(), Config{Device: "cuda:0", Seed: 7, Short: true, Ops: []string{"softmax", "gather", "matmul"}})
	if err != nil || ops.Failed > 0 || ops.Broken != "" {
		t.Errorf("%v, %+v", err, ops)
	}
	t.Setenv(bePython, "right")
	beside, err := compare(t.Context(), device.Name{Kind: "cuda"}, os.Args[0], products, nil)
	if err != nil || beside.Failed() > 0 {
		t.Errorf("%v\n%s", err, beside.Text(100))
	}
	answers, err := RunProbes(t.Context(), "cuda:0", nil)
	if err != nil || len(answers) != len(ledger.Probes()) || countOf(answers, Holds) != len(answers) {
		t.Errorf("%v\n%s", err, ProbesText(answers, 100))
	}
	if r, err := NewRecord(&Report{Device: "cuda:0"}, beside, answers); err != nil || r.CUDA == "" {
		t.Errorf("%v, %+v", err, r)
	}
}

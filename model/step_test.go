package model_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// What a step of GPT-2 124M may cost at most, as the command trains it in bf16 with 64×1024 tokens.
const (
	mostKernels = 413
	mostBytes   = 180e9
	mostMemory  = 32 << 30
	fullGrid    = 264 // blocks: two for each multiprocessor of an H200
)

// TestGPT2Step counts a step of GPT-2 124M by the plans for an H200, and the blocks of its products.
func TestGPT2Step(t *testing.T) {
	env, err := tensor.Fresh("null:h200")
	if err != nil {
		t.Fatal(err)
	}
	g := model.NewGPT(env, model.GPTConfig{Vocab: 50257, Context: 1024, Layers: 12, Heads: 12, Width: 768})
	opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{LR: 1e-3, Clip: 1, Rule: optim.DecayMatricesOnly})
	tokens := env.RandInt(0, 31, 64, 1024)
	step := func(turn uint64) {
		e, scope := env.Autocast(dtype.BF16).Scope(turn)
		g.Loss(tokens.In(e), tokens.In(e)).Backward()
		opt.Step()
		scope.End()
	}
	step(0)
	var tally device.Tally
	products := map[ir.Op]bool{}
	stop := env.Device().Observe(func(e *device.Event) {
		tally.Observe(e)
		if e.Kernel != nil && e.Step == 0 && (e.Kernel.Op.Code == ir.MatMul || e.Kernel.Op.Code == ir.Linear) {
			products[e.Kernel.Op] = true
			if blocks := e.Kernel.Steps[0].Blocks(); blocks < fullGrid {
				t.Errorf("%s launches %d blocks", e.Kernel.Op, blocks)
			}
		}
	})
	step(1)
	stop()
	work, _ := tally.Work()
	t.Logf("%d kernels, %.1f GB read and %.1f GB written, a peak of %.1f GiB", work.Kernels, float64(work.Read)/1e9, float64(work.Written)/1e9, float64(env.Device().Memory().Peak)/(1<<30))
	if work.Kernels > mostKernels || work.Read+work.Written > mostBytes || env.Device().Memory().Peak > mostMemory || len(products) < 12 {
		t.Errorf("a step is %v, with a peak of %d bytes and %d products of one kind", work, env.Device().Memory().Peak, len(products))
	}
}

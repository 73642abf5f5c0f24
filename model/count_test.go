package model_test

import (
	"maps"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestResNet50Counted holds what a step of ResNet-50 with 64 pictures of 224×224 in bf16 may cost a card: no copy of an
// activation for its layout, norms with ReLU and residual in two kernels each way, and the figures of docs/gpu.md.
func TestResNet50Counted(t *testing.T) {
	env, err := tensor.Fresh("null:h200")
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewResNet(env, model.ResNet50(1000))
	opt := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 0.1, Momentum: 0.9})
	x, y := env.Rand(64, 3, 224, 224), env.RandInt(0, 1000, 64)
	step := func(turn uint64) {
		e, scope := env.Autocast(dtype.BF16).Scope(turn)
		nn.CrossEntropy(m.Forward(x.In(e)), y.In(e)).Backward()
		opt.Step()
		scope.End()
	}
	step(0)
	env.Device().ResetPeak()
	c := counted50{passes: map[string]int{}}
	stop := env.Device().Observe(c.observe)
	step(1)
	stop()
	work, ops := c.Tally.Work()
	t.Logf("%v; peak %d bytes", work, env.Device().Memory().Peak)
	for code, want := range map[ir.Code]int64{ir.BatchNorm: 2 * 53, ir.BatchNormGrad: 2 * 53, ir.ReLU: 0, ir.ReLUGrad: 0, ir.Copy: 0} {
		if got := ops[code.String()].Kernels; got != want {
			t.Errorf("%d kernels of %s, want %d", got, code, want)
		}
	}
	// Beside products, norms and pools: a block's input has two gradients. Those within the last stage are below the limit.
	if want := map[string]int{"add, backward": 14}; !maps.Equal(c.passes, want) {
		t.Errorf("other passes over activations: %v, want %v", c.passes, want)
	}
	if total := work.Read + work.Written; work.Kernels > 782 || total > 22<<30 || env.Device().Memory().Peak > 3<<30 {
		t.Errorf("%v and at most %d bytes at a time; 782 kernels, 22 GiB and 3 GiB are allowed", work, env.Device().Memory().Peak)
	}
}

// counted50 is a tally that also counts passes over activations, by the op and when.
type counted50 struct {
	device.Tally
	passes map[string]int
}

func (c *counted50) observe(e *device.Event) {
	c.Tally.Observe(e)
	const smallest = 64 * 1024 * 14 * 14 // elements of a block's result, but in the last stage
	if e.Kind != device.KindLaunch || e.Step > 0 || e.Kernel.Out[0].Size() < smallest {
		return
	}
	switch e.Kernel.Op.Code.Row().Group {
	case ir.Products, ir.Rowwise, ir.Updates:
		return
	}
	name := e.Kernel.Op.Code.String()
	if e.Backward {
		name += ", backward"
	}
	c.passes[name]++
}

package examples

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestLaunches: what a training step asks of a GPU. Of the README's step 13 kernels are the model's and its gradients'; the
// loss, its gradient, the norm and the update are the rest. A step that needs more has become slower where launches bound it.
func TestLaunches(t *testing.T) {
	env, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		most  int64
		build func() (m any, loss func(e *tensor.Env) *tensor.Tensor)
	}{
		"README": {15, func() (any, func(*tensor.Env) *tensor.Tensor) {
			return classifier(env, nn.Sequential{nn.Flatten{}, nn.NewLinear(env, 784, 128), nn.ReLU{}, nn.NewLinear(env, 128, 10)}, 128)
		}},
		"convnet": {39, func() (any, func(*tensor.Env) *tensor.Tensor) {
			return classifier(env, model.NewConvnet(env, model.Digits), 4)
		}},
		"gpt": {74, func() (any, func(*tensor.Env) *tensor.Tensor) {
			g := model.NewGPT(env, model.GPTConfig{Vocab: 65, Context: 16, Layers: 2, Heads: 2, Width: 32})
			tokens := env.RandInt(0, 65, 2, 16)
			return g, func(e *tensor.Env) *tensor.Tensor { return nn.CrossEntropy(g.Forward(tokens.In(e)), tokens.In(e)) }
		}},
	} {
		m, loss := c.build()
		opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{})
		var w device.Work
		for i := range 3 { // the first makes what optimizers keep
			w = device.Work{}
			stop := env.Device().Observe(w.Add)
			e, scope := env.Scope(uint64(i))
			loss(e).Backward()
			opt.Step()
			scope.End()
			stop()
		}
		t.Logf("%s: %v", name, w)
		if got := w.Kernels; got == 0 || got > c.most || w.Copies > 0 {
			t.Errorf("%s: a step is %d launches and %d copies, at most %d and none", name, got, w.Copies, c.most)
		}
	}
}

// classifier is a model of images of digits with a batch of n.
func classifier(env *tensor.Env, m nn.Module, n int) (any, func(*tensor.Env) *tensor.Tensor) {
	x, y := env.Rand(n, 1, 28, 28), env.RandInt(0, 10, n)
	return m, func(e *tensor.Env) *tensor.Tensor { return nn.CrossEntropy(m.Forward(x.In(e)), y.In(e)) }
}

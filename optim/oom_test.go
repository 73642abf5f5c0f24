package optim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestStateOutOfMemory: where the state of an optimizer does not fit, the error says what it takes, and what takes none fits.
func TestStateOutOfMemory(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	layer := nn.NewLinear(env, 100, 100)
	bytes := int64(4 * (100*100 + 100))
	step := func(opt optim.Optimizer) error {
		_, err := tensor.Try(env, func(env *tensor.Env) int {
			layer.Forward(env.Ones(2, 100)).Sum().Backward()
			opt.Step()
			return 0
		})
		opt.Discard()
		return err
	}
	adam := optim.NewAdamW(nn.Params(layer), optim.AdamWConfig{LR: 1e-3})
	env.Device().SetLimit(env.Device().Memory().Used + bytes + bytes/2)
	var oom *tensor.OOMError
	if err := step(adam); !errors.As(err, &oom) || len(oom.Levers) == 0 || !strings.HasPrefix(oom.Levers[0].Flag, "optim.NewSGD") || oom.Levers[0].Saves != 2*bytes {
		t.Fatalf("%v: %+v", err, oom)
	}
	adam = nil
	if err := step(optim.NewSGD(nn.Params(layer), optim.SGDConfig{LR: 1e-3})); err != nil {
		t.Error(err)
	}
}

package train_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestParams: with small updates bfloat16 stands still where float32, Kahan's sums and stochastic rounding learn; weights take
// half the memory; a run in two parts, and where it can be captured a captured one, leaves the same bytes.
func TestParams(t *testing.T) {
	dir := t.TempDir()
	data := traintest.Pictures(t, 40, 1, 6, 3)
	run := func(params, out string, steps int, capture, resume bool) *train.Result {
		c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 36, "steps": steps, "optimizer": "sgd", "lr": 0.004, "amp": "bf16", "params": params})
		c.Out, c.Capture, c.Resume = filepath.Join(dir, out), capture, resume
		r, _ := traintest.Run(t, c)
		return r
	}
	const steps = 300
	exact := run("f32", "f32", steps, false, false)
	gained := exact.Log[0].Loss - exact.Loss
	for _, params := range train.AllParams[1:] {
		r := run(params, params, steps, false, false)
		share := (r.Log[0].Loss - r.Loss) / gained
		if stands := params == string(train.ParamsBF16); stands != (share < 0.7) || !stands && math.Abs(share-1) > 0.1 {
			t.Errorf("--params %s learns %.2f of what float32 does: loss %v, %v", params, share, r.Loss, exact.Loss)
		}
		if r.Memory.Weights > exact.Memory.Weights*6/10 {
			t.Errorf("--params %s: %d bytes of weights, in float32 %d", params, r.Memory.Weights, exact.Memory.Weights)
		}
		if kept := r.Memory.Optimizer > exact.Memory.Optimizer+1000; kept != (params == string(train.ParamsKahan)) {
			t.Errorf("--params %s: %d bytes of the optimizer, in float32 %d", params, r.Memory.Optimizer, exact.Memory.Optimizer)
		}
		run(params, params+" in parts", 100, false, false)
		run(params, params+" in parts", steps, false, true)
		ways := []string{" in parts"}
		if params != string(train.ParamsStochastic) {
			run(params, params+" captured", steps, true, false)
			ways = append(ways, " captured")
		}
		for _, way := range ways {
			if traintest.Read(t, filepath.Join(dir, params+way, "model.safetensors")) != traintest.Read(t, filepath.Join(dir, params, "model.safetensors")) {
				t.Errorf("--params %s%s ends elsewhere", params, way)
			}
		}
	}
}

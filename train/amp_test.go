package train_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestAMP: every value gives numbers of its own, a little apart from float32's, and says what its loss scaler did.
func TestAMP(t *testing.T) {
	losses := map[float64]string{}
	exact := math.NaN()
	for _, value := range train.AMPs {
		c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 5, "amp": value})
		r, _ := traintest.Run(t, c)
		if value == string(train.AMPNone) {
			exact = r.Loss
		}
		if other, same := losses[r.Loss]; same || math.Abs(r.Loss-exact) > 0.02 {
			t.Errorf("--amp %s: loss %v, in float32 %v, and %q has the same", value, r.Loss, exact, other)
		}
		losses[r.Loss] = value
		if scaled := value == string(train.AMPFP16); (r.Scale != nil) != scaled || (r.Left != nil) != scaled {
			t.Errorf("--amp %s: scale %v, left out %v", value, r.Scale, r.Left)
		}
	}
}

// TestAMPOfEarlierVersions: the truth value in an old run's settings is bf16, and such a run goes on as it would have.
func TestAMPOfEarlierVersions(t *testing.T) {
	dir := t.TempDir()
	data := traintest.Pictures(t, 40, 1, 6, 3)
	run := func(out string, steps int, resume bool) *train.Result {
		c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 8, "steps": steps, "amp": true})
		c.Out, c.Resume = filepath.Join(dir, out), resume
		r, _ := traintest.Run(t, c)
		return r
	}
	want := run("whole", 8, false)
	run("old", 4, false)
	path := filepath.Join(dir, "old", "config.json")
	text := traintest.Read(t, path)
	old := strings.Replace(text, `"amp": "bf16"`, `"amp": true`, 1)
	if old == text {
		t.Fatal(text)
	}
	if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := run("old", 8, true); got.Loss != want.Loss {
		t.Errorf("loss %v, want %v", got.Loss, want.Loss)
	}
	for text, want := range map[string]train.AMP{`true`: train.AMPBF16, `false`: train.AMPNone, `"fp16"`: train.AMPFP16} {
		var a train.AMP
		if err := json.Unmarshal([]byte(text), &a); err != nil || a != want {
			t.Errorf("%s is %q, want %q: %v", text, a, want, err)
		}
	}
}

// TestFP16Overflows: steps whose gradients are beyond float16 are left out and told, captured or not, and a run that goes on
// has their number and the scale.
func TestFP16Overflows(t *testing.T) {
	dir := t.TempDir()
	data := traintest.Pictures(t, 40, 1, 6, 3)
	run := func(out string, steps int, capture, resume bool) *train.Result {
		c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 1, "steps": steps, "lr": 3, "optimizer": "sgd", "amp": "fp16"})
		c.Out, c.Capture, c.Resume = filepath.Join(dir, out), capture, resume
		r, _ := traintest.Run(t, c)
		return r
	}
	want := run("whole", 24, false, false)
	skipped := 0
	for _, s := range want.Log {
		if s.Skipped {
			skipped++
		}
	}
	if skipped == 0 || *want.Left < skipped || *want.Scale != math.Ldexp(65536, -*want.Left) {
		t.Errorf("%d steps left out by the log, %d by the end, scale %v", skipped, *want.Left, *want.Scale)
	}
	run("parts", 9, false, false)
	for out, got := range map[string]*train.Result{"parts": run("parts", 24, false, true), "captured": run("captured", 24, true, false)} {
		if *got.Left != *want.Left || *got.Scale != *want.Scale || got.Loss != want.Loss {
			t.Errorf("%s: %d steps left out, scale %v, loss %v, want %d, %v, %v", out, *got.Left, *got.Scale, got.Loss, *want.Left, *want.Scale, want.Loss)
		}
		if traintest.Read(t, filepath.Join(dir, out, "model.safetensors")) != traintest.Read(t, filepath.Join(dir, "whole", "model.safetensors")) {
			t.Errorf("%s ends elsewhere", out)
		}
	}
}

// TestAMPOnASimulatedCard: 20 steps end where the CPU's do, but for what the order of sums is allowed: the spacing of the
// products' dtype, and of float32's losses what internal/check allows after steps. The scale is the same.
func TestAMPOnASimulatedCard(t *testing.T) {
	for _, value := range train.AMPs {
		run := func(device string) *train.Result {
			c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 20, "lr": 0.01, "amp": value, "device": device})
			r, _ := traintest.Run(t, c)
			return r
		}
		allowed := map[train.AMP]float64{train.AMPBF16: dtype.BF16.Epsilon()}[train.AMP(value)]
		allowed = max(allowed, dtype.F16.Epsilon())
		here, there := run("cpu"), run("sim:0")
		for i, s := range there.Log {
			within(t, fmt.Sprintf("--amp %s: the loss of step %d", value, s.Step), s.Loss, here.Log[i].Loss, allowed)
		}
		if len(there.Log) != 20 || (here.Scale == nil) != (there.Scale == nil) || here.Scale != nil && (*here.Scale != *there.Scale || *here.Left != *there.Left) {
			t.Errorf("--amp %s: %d steps, scale %v, want %v", value, len(there.Log), there.Scale, here.Scale)
		}
	}
}

// TestFP16Learns: a language model in float16 ends within 0.02 of float32's loss on what is held out, and elsewhere; where all
// of a walk is asked for, which takes minutes, so does --amp tf32, and the convnet recognises 98.5 % of the digits.
func TestFP16Learns(t *testing.T) {
	all := testutil.NewSpread(t, 1, 2).All()
	values := []string{"none", "fp16"}
	if all {
		values = train.AMPs
	}
	exact := math.NaN()
	for _, value := range values {
		c := traintest.Config(t, "gpt", map[string]any{"data": "../docs/why.md", "batch": 16, "context": 32, "layers": 2, "width": 64, "steps": 60, "amp": value})
		r, _ := traintest.Run(t, c)
		if value == "none" {
			exact = *r.ValLoss
		} else if apart := math.Abs(*r.ValLoss - exact); apart == 0 || apart > 0.02 {
			t.Errorf("--amp %s: %v on what is held out, in float32 %v", value, *r.ValLoss, exact)
		}
	}
	if all {
		if r, _ := traintest.Run(t, traintest.Config(t, "digits", map[string]any{"amp": "fp16"})); *r.Accuracy < 0.985 {
			t.Errorf("%.2f %% of the digits", 100**r.Accuracy)
		}
	}
}

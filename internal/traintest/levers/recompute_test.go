package levers_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// keeping are the levers that keep less between forward and backward, or between steps, and change no number.
func keeping(task string) []map[string]any {
	list := []map[string]any{{"recompute": "block"}, {"recompute": "auto"}}
	if task == "gpt" {
		list = append(list, map[string]any{"recompute": "attention"})
	}
	return list
}

// brief are runs of a few steps of each task, with what looks across samples, random numbers and short last batches.
func brief(t *testing.T) map[string]map[string]any {
	return map[string]map[string]any{
		"mlp":      {"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 16},
		"digits":   {"data": traintest.Pictures(t, 40, 1, 8, 3), "batch": 16},
		"resnet18": {"data": traintest.Pictures(t, 20, 3, 8, 3), "batch": 6},
		"tabular":  {"data": filepath.Join("../../../train", traintest.Cars), "target": "price", "batch": 64},
		"gpt":      {"tokens": traintest.IDs(t, 700), "vocab": 7, "context": 12, "layers": 2, "heads": 2, "width": 16, "batch": 6, "dropout": 0.1},
	}
}

// circumstances are what else a run may be told.
func circumstances() map[string]map[string]any {
	list := map[string]map[string]any{"plain": {}, "bf16": {"amp": "bf16"}, "fp16": {"amp": "fp16"}, "parts": {"accumulate": 2}, "captured": {"capture": true}, "clipped": {"clip": 0.5}, "inward": {"step-in-backward": true},
		"kahan": {"amp": "bf16", "params": "bf16-kahan", "average": 0.0}, "stochastic": {"amp": "bf16", "params": "bf16-stochastic", "average": 0.0}, "tf32": {"amp": "tf32"}, "statistics": {"statistics": 2}}
	for _, name := range recipe.OptimizerNames() {
		list[name] = map[string]any{"optimizer": name, "lr": 0.01}
	}
	return list
}

// TestLeversKeepBits: losses and weights are those of a run without the lever, bit for bit, with every optimizer, in 16 bits, with
// a loss scaler, in parts, captured; and those of a run that takes the lever up half way, or lets go of it.
func TestLeversKeepBits(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 12)
	for task, base := range brief(t) {
		for how, more := range circumstances() {
			if task == "resnet18" && more["optimizer"] != nil { // eleven million parameters
				continue
			}
			if !spread.Takes(task+" "+how) || task == "resnet18" && !spread.All() { // seconds each
				continue
			}
			t.Run(task+"/"+how, func(t *testing.T) {
				losses, weights := traintest.Trained(t, task, "cpu", traintest.Merged(base, more, map[string]any{"steps": 4}))
				for _, lever := range keeping(task) {
					got, ends := traintest.Trained(t, task, "cpu", traintest.Merged(base, more, lever, map[string]any{"steps": 4}))
					if !slices.Equal(got, losses) || string(ends) != string(weights) {
						t.Errorf("%v: losses %v, without %v", lever, got, losses)
					}
				}
			})
		}
		for _, lever := range keeping(task) {
			if !spread.Takes(fmt.Sprint(task, lever)) || task == "resnet18" && !spread.All() {
				continue
			}
			without := maps.Clone(lever)
			for name := range without {
				without[name] = "none"
			}
			whole, _ := traintest.Trained(t, task, "cpu", traintest.Merged(base, map[string]any{"steps": 6}))
			for _, halves := range [][2]map[string]any{{lever, without}, {without, lever}, {lever, lever}} {
				out := filepath.Join(t.TempDir(), "run")
				var r *train.Result
				for i, half := range halves {
					c := traintest.Config(t, task, traintest.Merged(base, half, map[string]any{"steps": 3 + 3*i}))
					if c.Out, c.Resume = out, i == 1; c.Resume {
						c.Given = map[string]bool{"steps": true}
						for name := range half {
							c.Given[name] = true
						}
					}
					r, _ = traintest.Run(t, c)
				}
				var got []float64
				for _, s := range r.Log {
					got = append(got, s.Loss)
				}
				if !slices.Equal(got, whole) {
					t.Errorf("%s, %v: losses %v, in one run without it %v", task, halves, got, whole)
				}
			}
		}
	}
}

// TestRecomputeOfEarlierVersions: the truth value in an old run's settings is block.
func TestRecomputeOfEarlierVersions(t *testing.T) {
	c := traintest.Config(t, "gpt", traintest.Merged(brief(t)["gpt"], map[string]any{"steps": 2, "recompute": true}))
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	path := filepath.Join(c.Out, "config.json")
	text := traintest.Read(t, path)
	old := strings.Replace(text, `"recompute": "block"`, `"recompute": true`, 1)
	if old == text {
		t.Fatal(text)
	}
	if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	c = train.Config{Out: c.Out, Resume: true, Steps: 3, Given: map[string]bool{"steps": true}}
	if r, _ := traintest.Run(t, c); r.Steps != 3 || !strings.Contains(traintest.Read(t, path), `"recompute": "block"`) {
		t.Errorf("%+v: %s", r, traintest.Read(t, path))
	}
	for text, want := range map[string]train.Recompute{"true": "block", "false": "none", "": "none", "attention": "attention"} {
		if v, err := train.ParseRecompute(text); v != want || err != nil {
			t.Errorf("%q is %v, %v", text, v, err)
		}
	}
}

// roomy are runs of which a block's values are more than what lies beside.
func roomy(t *testing.T) map[string]map[string]any {
	return map[string]map[string]any{
		"resnet18": {"data": traintest.Pictures(t, 80, 3, 64, 3), "batch": 64, "steps": 2},
		"gpt":      {"tokens": traintest.IDs(t, 3000), "vocab": 7, "context": 64, "layers": 4, "heads": 4, "width": 64, "batch": 8, "steps": 3},
	}
}

// TestLeversSave: a lever saves what the device that computes nothing says, to 2 % or 1 MiB, and the more the larger it is.
func TestLeversSave(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 3)
	for task, base := range roomy(t) {
		peak := func(device string, lever map[string]any) int64 {
			traintest.Cleaned(t, device)
			c := traintest.Config(t, task, traintest.Merged(base, lever))
			c.Device = device
			r, _ := traintest.Run(t, c)
			return r.PeakBytes
		}
		for _, lever := range keeping(task) {
			if !spread.Takes(fmt.Sprint(task, lever)) {
				continue
			}
			said := peak("null:a100-80", nil) - peak("null:a100-80", lever)
			plain := peak("cpu", nil)
			saved := plain - peak("cpu", lever)
			t.Logf("%s %v saves %d of %d bytes, and was said to save %d", task, lever, saved, plain, said)
			if off := saved - said; said <= 1<<20 || max(off, -off) > max(said/50, 1<<20) {
				t.Errorf("%s %v saves %d bytes, and was said to save %d", task, lever, saved, said)
			}
		}
	}
}

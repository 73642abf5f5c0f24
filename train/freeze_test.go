package train_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// weightsOf are the tensors that a run left, by name.
func weightsOf(t *testing.T, out string) map[string]string {
	t.Helper()
	f, err := safetensors.Parse([]byte(traintest.Read(t, filepath.Join(out, "model.safetensors"))))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range f.Entries {
		all[e.Name] = string(e.Data())
	}
	return all
}

// TestFreeze: of a step of plain descent, what is frozen stays and the rest moves as it does where nothing is frozen, to the bit,
// whatever else the run does: a run takes one way for a network of eleven million parameters.
func TestFreeze(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 12)
	gpt := map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 2, "heads": 2, "width": 16, "batch": 10}
	for _, of := range []struct {
		task, freeze string
		change       map[string]any
		is           func(name string) bool // frozen
	}{
		{"mlp", "3", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 10}, func(name string) bool { return strings.HasPrefix(name, "3.") }},
		{"resnet18", "conv1,bn1,layer?", map[string]any{"data": traintest.Pictures(t, 20, 3, 8, 3), "batch": 4}, func(name string) bool { return !strings.HasPrefix(name, "fc.") && !strings.Contains(name, "running") }},
		{"gpt", "transformer.w*,transformer.h.0,*.bias", gpt, func(name string) bool {
			name = strings.TrimPrefix(name, "transformer.")
			return strings.HasPrefix(name, "w") || strings.HasPrefix(name, "h.0.") || strings.HasSuffix(name, ".bias")
		}},
		{"lstm", "embed,rnn.bias_*", map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "width": 16, "batch": 10},
			func(name string) bool {
				return strings.HasPrefix(name, "embed.") || strings.HasPrefix(name, "rnn.bias")
			}},
	} {
		ways := map[string]map[string]any{
			"plain": {}, "accumulate": {"accumulate": 2}, "capture": {"capture": true}, "amp": {"amp": "bf16"}, "step-in-backward": {"step-in-backward": true},
			"recompute": {"recompute": "block"}, "average": {"average": 0.5},
		}
		names := slices.Sorted(maps.Keys(ways))
		if of.task == "resnet18" {
			names = testutil.Some(spread, names, strings.Clone)
		}
		for _, how := range names {
			lever := ways[how]
			t.Run(of.task+"/"+how, func(t *testing.T) {
				run := func(steps int, freeze string) (map[string]string, *train.Result, *traintest.Recorder) {
					change := traintest.Merged(of.change, lever)
					maps.Copy(change, map[string]any{"steps": steps, "device": "cpu", "optimizer": "sgd", "lr": 0.01, "freeze": freeze})
					c := traintest.Config(t, of.task, change)
					c.Out = filepath.Join(t.TempDir(), "run")
					r, watch := traintest.Run(t, c)
					return weightsOf(t, c.Out), r, watch
				}
				free, whole, _ := run(1, "")
				one, _, _ := run(1, of.freeze)
				three, r, watch := run(3, of.freeze)
				moved, stayed := 0, 0
				for name, w := range three {
					switch {
					case strings.Contains(name, "num_batches") || strings.Contains(name, "running"):
					case of.is(name):
						stayed += len(w) / 4
						if w != one[name] {
							t.Errorf("%s is frozen, and moves", name)
						}
					default:
						moved++
						if one[name] != free[name] {
							t.Errorf("%s moves otherwise than where nothing is frozen", name)
						}
						if w == one[name] {
							t.Errorf("%s is not frozen, and stays", name)
						}
					}
				}
				if moved == 0 || r.Frozen != stayed || whole.Frozen != 0 || !strings.Contains(strings.Join(watch.Notes, "\n"), "are frozen") {
					t.Errorf("%d tensors moved, %d numbers stayed, told %d, notes %q", moved, stayed, r.Frozen, watch.Notes)
				}
			})
		}
	}
}

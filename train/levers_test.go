package train_test

import (
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/train"
)

// lossesOf are those of a run of a task, with changes on top of each other.
func lossesOf(t *testing.T, task string, changes ...map[string]any) (all []float64) {
	t.Helper()
	change := map[string]any{"steps": 4, "device": "cpu"}
	for _, c := range changes {
		maps.Copy(change, c)
	}
	_, watch := mustRun(t, config(t, task, change))
	for _, s := range watch.steps {
		all = append(all, s.Loss)
	}
	return all
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d losses, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance*math.Abs(want[i])) {
			t.Errorf("%s, step %d: loss %v, want %v", what, i+1, got[i], want[i])
		}
	}
}

// TestAccumulate: a batch in parts has the losses of the whole one, but for rounding.
func TestAccumulate(t *testing.T) {
	for task, change := range map[string]map[string]any{
		"mlp": {"data": pictures(t, 40, 1, 6, 3)},
		"gpt": {"tokens": ids(t, 400), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 16},
	} {
		change["batch"] = 10
		whole := lossesOf(t, task, change)
		for _, parts := range []int{2, 5, 10} {
			near(t, task, lossesOf(t, task, change, map[string]any{"accumulate": parts}), whole, 1e-5)
		}
	}
}

// TestPartsAcrossSamples: a run says that batch norms see parts, and only then.
func TestPartsAcrossSamples(t *testing.T) {
	for task, norms := range map[string]bool{"mlp": false, "resnet18": true} {
		for _, parts := range []int{1, 2} {
			c := config(t, task, map[string]any{"data": pictures(t, 20, 3, 8, 3), "batch": 4, "steps": 1, "device": "null:l4", "accumulate": parts})
			_, watch := mustRun(t, c)
			if said := strings.Contains(strings.Join(watch.notes, "\n"), "batch norms see one of 2 parts"); said != (norms && parts == 2) {
				t.Errorf("%s in %d parts: notes %q", task, parts, watch.notes)
			}
		}
	}
}

// TestKeptScores: kept scores give the losses of scores in chunks, but for rounding, also where blocks are run again.
func TestKeptScores(t *testing.T) {
	gpt := map[string]any{"tokens": tokensBelow(t, 2000, 900), "vocab": 900, "context": 64, "layers": 1, "heads": 2, "width": 16, "batch": 32}
	for _, how := range []map[string]any{{}, {"recompute": true}, {"capture": true}, {"accumulate": 4}} {
		near(t, "whole", lossesOf(t, "gpt", gpt, how, map[string]any{"head": "whole"}), lossesOf(t, "gpt", gpt, how, map[string]any{"head": "chunked"}), 1e-6)
	}
	run := func(head string) *train.Result {
		c := config(t, "gpt", gpt)
		c.Steps, c.Head, c.Device = 2, train.Head(head), "cpu"
		r, _ := mustRun(t, c)
		return r
	}
	scores := int64(32 * 64 * 900 * 4)
	if whole, chunked := run("whole").PeakBytes, run("chunked").PeakBytes; whole < chunked+scores/2 {
		t.Errorf("%d bytes with all scores kept, %d without", whole, chunked)
	}
}

// TestStepInBackward: a run whose gradients are applied as they come is the run, to the bit, with whatever it can be combined.
func TestStepInBackward(t *testing.T) {
	gpt := map[string]any{"tokens": ids(t, 400), "vocab": 7, "context": 8, "layers": 2, "heads": 2, "width": 16, "batch": 10}
	for name, how := range map[string]map[string]any{
		"plain": {}, "recompute": {"recompute": true}, "capture": {"capture": true}, "amp": {"amp": "bf16"}, "average": {"average": 0.9},
		"sgd": {"optimizer": "sgd", "momentum": 0.9}, "head": {"head": "whole"}, "anomaly": {"anomaly": true},
	} {
		near(t, name, lossesOf(t, "gpt", gpt, how, map[string]any{"step-in-backward": true}), lossesOf(t, "gpt", gpt, how), 0)
	}
	pixels := map[string]any{"data": pictures(t, 20, 3, 8, 3), "batch": 4}
	near(t, "resnet18", lossesOf(t, "resnet18", pixels, map[string]any{"step-in-backward": true}), lossesOf(t, "resnet18", pixels), 0)
}

// TestLeversRefuse: what a lever cannot do is said before anything is done.
func TestLeversRefuse(t *testing.T) {
	pixels := pictures(t, 40, 1, 6, 3)
	gpt := map[string]any{"tokens": ids(t, 400), "vocab": 7}
	for _, c := range []struct {
		task   string
		change map[string]any
		text   string
		hint   string
	}{
		{"mlp", map[string]any{"batch": 10, "accumulate": 3}, "--accumulate 3 does not divide --batch 10", "what divides it is 1, 2, 5 and 10"},
		{"mlp", map[string]any{"batch": 4, "accumulate": 5}, "--accumulate 5 does not divide --batch 4", "what divides it is 1, 2 and 4"},
		{"mlp", map[string]any{"batch": 4, "accumulate": 0}, "--accumulate is 0", "give a number from 1 up"},
		{"mlp", map[string]any{"batch": 4, "accumulate": -2}, "--accumulate is -2", "give a number from 1 up"},
		{"mlp", map[string]any{"step-in-backward": true, "clip": 1.5}, "--clip 1.5 is about the norm", "leave one of them out"},
		{"mlp", map[string]any{"step-in-backward": true, "amp": "fp16"}, "--amp fp16 leaves steps out", "--amp bf16"},
		{"mlp", map[string]any{"step-in-backward": true, "accumulate": 2}, "--accumulate 2 adds them up", "leave one of them out"},
		{"mlp", map[string]any{"head": "whole"}, "--head is for gpt", "leave --head out"},
	} {
		change := map[string]any{"data": pixels}
		if c.task == "gpt" {
			change = maps.Clone(gpt)
		}
		maps.Copy(change, c.change)
		k := config(t, c.task, change)
		k.Out = filepath.Join(t.TempDir(), "run")
		_, err := train.Run(t.Context(), k, nil)
		var known *train.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%v: %v", c.change, err)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "1.5", "2 3"} {
		if _, err := train.ParseParts(text); err == nil {
			t.Errorf("%q is a number of parts", text)
		}
	}
	if _, err := train.ParseHead("half"); err == nil {
		t.Error("half a head")
	}
}

// TestLeversAreChangeable: a run goes on with levers that it did not begin with.
func TestLeversAreChangeable(t *testing.T) {
	change := map[string]any{"tokens": ids(t, 400), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 16, "batch": 10, "device": "cpu", "steps": 3}
	c := config(t, "gpt", change)
	c.Out = filepath.Join(t.TempDir(), "run")
	mustRun(t, c)
	c.Resume, c.Steps, c.Accumulate, c.Head = true, 6, 5, train.HeadWhole
	c.Given = map[string]bool{"steps": true, "accumulate": true, "head": true}
	r, _ := mustRun(t, c)
	whole := lossesOf(t, "gpt", change, map[string]any{"steps": 6})
	var all []float64
	for _, s := range r.Log {
		all = append(all, s.Loss)
	}
	near(t, "in other parts", all, whole, 1e-5)
	if !slices.Equal(all[:3], whole[:3]) {
		t.Error("the steps before are others")
	}
	c.Steps, c.Accumulate, c.Head, c.InBackward = 9, 1, train.HeadChunked, true
	c.Given["step-in-backward"] = true
	r, _ = mustRun(t, c)
	near(t, "as they come", []float64{r.Log[8].Loss}, lossesOf(t, "gpt", change, map[string]any{"steps": 9})[8:], 1e-5)
}

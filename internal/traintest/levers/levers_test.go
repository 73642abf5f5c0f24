package levers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

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
		"mlp":  {"data": traintest.Pictures(t, 40, 1, 6, 3)},
		"gpt":  {"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 16},
		"lstm": {"tokens": traintest.IDs(t, 1000), "vocab": 7, "context": 8, "width": 16},
	} {
		change["batch"] = 10
		whole := traintest.LossesOf(t, task, change)
		for _, parts := range []int{2, 5, 10} {
			near(t, task, traintest.LossesOf(t, task, change, map[string]any{"accumulate": parts}), whole, 1e-5)
		}
	}
}

// squeezing takes memory away after a step, so that a limit holds from the next on.
type squeezing struct {
	*traintest.Recorder
	dev   *tensor.Device
	after int
	limit int64
}

func (s *squeezing) Step(x train.Step) {
	if s.Recorder.Step(x); x.Step == s.after {
		s.dev.SetLimit(s.limit)
	}
}

// TestAccumulateAuto: from the step in which memory runs out, a run that chooses its parts is to the bit what it is with these
// parts given from that step on; it notes them, and goes on from a checkpoint in them. A run in twelve takes the largest network.
func TestAccumulateAuto(t *testing.T) {
	if !testutil.Alone(t) { // devices are opened by name
		return
	}
	text, spread := traintest.Tokens(t, 3000, 300), testutil.NewSpread(t, testutil.Seed(t), 12)
	for task, change := range map[string]map[string]any{
		"gpt": {"tokens": text, "vocab": 300, "context": 16, "layers": 2, "heads": 2, "width": 16, "batch": 12, "dropout": 0.2},
		// What is remembered of rows moves too.
		"lstm": {"tokens": text, "vocab": 300, "context": 16, "layers": 2, "width": 16, "batch": 12, "dropout": 0.2, "head": "whole"},
		// Running statistics move in the attempt that fails; a part of one sample has none.
		"digits":   {"data": traintest.Pictures(t, 90, 1, 28, 3), "batch": 48, "amp": "bf16"},
		"resnet18": {"data": traintest.Pictures(t, 200, 1, 40, 3), "batch": 64, "optimizer": "sgd", "steps": 2, "lr": 0.001},
	} {
		if task == "resnet18" && !spread.Takes(task) {
			continue
		}
		t.Run(task, func(t *testing.T) { autoIs(t, task, change) })
	}
}

func autoIs(t *testing.T, task string, change map[string]any) {
	steps := 7
	if n, ok := change["steps"].(int); ok {
		steps = n
	}
	run := func(values map[string]any, watch func(r *traintest.Recorder) train.Watcher) (*traintest.Recorder, *train.Result) {
		all := maps.Clone(change)
		all["steps"], all["device"] = steps, "cpu"
		maps.Copy(all, values)
		delete(all, "out")
		delete(all, "resume")
		c := traintest.Config(t, task, all)
		if out, ok := values["out"]; ok {
			c.Out = out.(string)
		}
		if _, ok := values["resume"]; ok {
			c.Resume = true
			c.Given = map[string]bool{"steps": true, "accumulate": values["accumulate"] != nil}
		}
		r := &traintest.Recorder{}
		result, err := train.Run(t.Context(), c, watch(r))
		if err != nil {
			t.Fatal(err)
		}
		return r, result
	}
	plainly := func(r *traintest.Recorder) train.Watcher { return r }
	dev := traintest.Cleaned(t, "cpu")
	defer dev.SetLimit(0)
	_, free := run(map[string]any{"steps": 2}, plainly)
	peak := free.PeakBytes
	_, parts := run(map[string]any{"steps": 2, "accumulate": 4}, plainly)
	limit := (peak + parts.PeakBytes) / 2
	out := filepath.Join(t.TempDir(), "run")
	traintest.Cleaned(t, "cpu")
	got, _ := run(map[string]any{"accumulate": "auto", "out": out}, func(r *traintest.Recorder) train.Watcher { return &squeezing{r, dev, 1, limit} })
	dev.SetLimit(0)
	at := slices.IndexFunc(got.Steps, func(s train.Step) bool { return s.Parts > 0 })
	if at < 1 {
		t.Fatalf("with %d of %d bytes, parts need %d: %+v", limit, peak, parts.PeakBytes, got.Steps)
	}
	t.Logf("step %d in %d parts with %d of %d bytes", at+1, got.Steps[at].Parts, limit, peak)
	other := filepath.Join(t.TempDir(), "run")
	run(map[string]any{"steps": at, "out": other}, plainly)
	want, _ := run(map[string]any{"out": other, "resume": true, "accumulate": got.Steps[at].Parts}, plainly)
	for i, s := range want.Steps {
		if s.Loss != got.Steps[at+i].Loss {
			t.Errorf("step %d: loss %v, with the parts given %v", at+i+1, got.Steps[at+i].Loss, s.Loss)
		}
	}
	if traintest.Read(t, out+"/model.safetensors") != traintest.Read(t, other+"/model.safetensors") {
		t.Error("the weights are others")
	}
	if !strings.Contains(strings.Join(got.Notes, "\n"), fmt.Sprintf("memory ran out in step %d: batches are taken in %d parts", at+1, got.Steps[at].Parts)) {
		t.Errorf("notes %q", got.Notes)
	}
	dev.SetLimit(0)
	on, _ := run(map[string]any{"out": out, "resume": true, "steps": steps + 1}, plainly)
	whole, _ := run(map[string]any{"out": other, "resume": true, "steps": steps + 1}, plainly)
	for i, s := range whole.Steps {
		if s.Loss != on.Steps[i].Loss {
			t.Errorf("step %d after a checkpoint: loss %v, with the parts given %v", s.Step, on.Steps[i].Loss, s.Loss)
		}
	}
}

// TestPartsAcrossSamples: a run says that batch norms see parts, and only then.
func TestPartsAcrossSamples(t *testing.T) {
	for task, norms := range map[string]bool{"mlp": false, "resnet18": true} {
		for _, parts := range []int{1, 2} {
			c := traintest.Config(t, task, map[string]any{"data": traintest.Pictures(t, 20, 3, 8, 3), "batch": 4, "steps": 1, "device": "null:l4", "accumulate": parts})
			_, watch := traintest.Run(t, c)
			if said := strings.Contains(strings.Join(watch.Notes, "\n"), "batch norms see one of 2 parts"); said != (norms && parts == 2) {
				t.Errorf("%s in %d parts: notes %q", task, parts, watch.Notes)
			}
		}
	}
}

// TestKeptScores: kept scores give the losses of scores in chunks, but for rounding, also where blocks are run again.
func TestKeptScores(t *testing.T) {
	gpt := map[string]any{"tokens": traintest.Tokens(t, 2000, 900), "vocab": 900, "context": 64, "layers": 1, "heads": 2, "width": 16, "batch": 32}
	for _, how := range []map[string]any{{}, {"recompute": true}, {"capture": true}, {"accumulate": 4}} {
		near(t, "whole", traintest.LossesOf(t, "gpt", gpt, how, map[string]any{"head": "whole"}), traintest.LossesOf(t, "gpt", gpt, how, map[string]any{"head": "chunked"}), 1e-6)
	}
	run := func(head string) *train.Result {
		c := traintest.Config(t, "gpt", gpt)
		c.Steps, c.Head, c.Device = 2, train.Head(head), "cpu"
		r, _ := traintest.Run(t, c)
		return r
	}
	scores := int64(32 * 64 * 900 * 4)
	if whole, chunked := run("whole").PeakBytes, run("chunked").PeakBytes; whole < chunked+scores/2 {
		t.Errorf("%d bytes with all scores kept, %d without", whole, chunked)
	}
}

// TestStepInBackward: a run whose gradients are applied as they come is the run, to the bit, with whatever it can be combined.
func TestStepInBackward(t *testing.T) {
	gpt := map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 2, "heads": 2, "width": 16, "batch": 10}
	for name, how := range map[string]map[string]any{
		"plain": {}, "recompute": {"recompute": true}, "capture": {"capture": true}, "amp": {"amp": "bf16"}, "average": {"average": 0.9},
		"sgd": {"optimizer": "sgd", "momentum": 0.9}, "head": {"head": "whole"}, "anomaly": {"anomaly": true},
	} {
		near(t, name, traintest.LossesOf(t, "gpt", gpt, how, map[string]any{"step-in-backward": true}), traintest.LossesOf(t, "gpt", gpt, how), 0)
	}
	pixels := map[string]any{"data": traintest.Pictures(t, 20, 3, 8, 3), "batch": 4}
	near(t, "resnet18", traintest.LossesOf(t, "resnet18", pixels, map[string]any{"step-in-backward": true}), traintest.LossesOf(t, "resnet18", pixels), 0)
}

// TestLeversRefuse: what a lever cannot do is said before anything is done.
func TestLeversRefuse(t *testing.T) {
	pixels := traintest.Pictures(t, 40, 1, 6, 3)
	gpt := map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7}
	for _, c := range []struct {
		task   string
		change map[string]any
		text   string
		hint   string
	}{
		{"mlp", map[string]any{"batch": 10, "accumulate": 3}, "--accumulate 3 does not divide --batch 10", "what divides it is 1, 2, 5 and 10"},
		{"mlp", map[string]any{"batch": 4, "accumulate": 5}, "--accumulate 5 does not divide --batch 4", "what divides it is 1, 2 and 4"},
		{"mlp", map[string]any{"batch": 4, "accumulate": 0}, "--accumulate is 0", "give a number from 1 up"},
		{"mlp", map[string]any{"accumulate": "auto", "capture": true}, "--accumulate auto begins a step again", "leave --capture out"},
		{"mlp", map[string]any{"accumulate": "auto", "step-in-backward": true}, "--accumulate auto may begin", "leave one of them out"},
		{"mlp", map[string]any{"step-in-backward": true, "clip": 1.5}, "--clip 1.5 is about the norm", "leave one of them out"},
		{"mlp", map[string]any{"step-in-backward": true, "amp": "fp16"}, "--amp fp16 leaves steps out", "--amp bf16"},
		{"mlp", map[string]any{"step-in-backward": true, "accumulate": 2}, "--accumulate 2 adds them up", "leave one of them out"},
		{"mlp", map[string]any{"head": "whole"}, "--head is for gpt", "leave --head out"},
		{"mlp", map[string]any{"freeze": "1.weight,none"}, "--freeze none matches no parameter", "1.weight, 1.bias, 3.weight, 3.bias"},
		{"mlp", map[string]any{"freeze": "1,3.*"}, "--freeze 1,3.* matches every parameter", "1.weight, 1.bias, 3.weight, 3.bias"},
		{"mlp", map[string]any{"freeze": "[1-"}, `"[1-" is no pattern`, "with commas between them"},
		{"mlp", map[string]any{"keep": "none"}, `--keep is "none"`, "from 1 up"},
		{"mlp", map[string]any{"keep": ""}, `--keep is ""`, "from 1 up"},
		{"mlp", map[string]any{"keep": "best", "order": "sequential"}, "--keep best goes by what is held out", "leave --keep best out"},
		{"mlp", map[string]any{"lora": 5000}, "--lora 5000 is above the rank of every matrix", "such as 8"},
		{"mlp", map[string]any{"lora": 2, "freeze": "1"}, "--lora 2 freezes all", "leave --freeze out"},
		{"mlp", map[string]any{"freeze": "1,,3"}, `"" is no pattern`, "with commas between them"},
	} {
		change := map[string]any{"data": pixels}
		if c.task == "gpt" {
			change = maps.Clone(gpt)
		}
		maps.Copy(change, c.change)
		k := traintest.Config(t, c.task, change)
		k.Out = filepath.Join(t.TempDir(), "run")
		_, err := train.Run(t.Context(), k, nil)
		var known *train.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%v: %v", c.change, err)
		}
	}
	negative := traintest.Config(t, "mlp", map[string]any{"data": pixels, "batch": 4})
	negative.Accumulate = -2
	if _, err := train.Run(t.Context(), negative, nil); err == nil || !strings.Contains(err.Error(), "--accumulate is -2") {
		t.Error(err)
	}
	if err := json.Unmarshal([]byte(`{"accumulate": -1}`), &negative); err == nil {
		t.Error("-1 is a number of parts")
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
	change := map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 16, "batch": 10, "device": "cpu", "steps": 3}
	c := traintest.Config(t, "gpt", change)
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	c.Resume, c.Steps, c.Accumulate, c.Head = true, 6, 5, train.HeadWhole
	c.Given = map[string]bool{"steps": true, "accumulate": true, "head": true}
	r, _ := traintest.Run(t, c)
	whole := traintest.LossesOf(t, "gpt", change, map[string]any{"steps": 6})
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
	r, _ = traintest.Run(t, c)
	near(t, "as they come", []float64{r.Log[8].Loss}, traintest.LossesOf(t, "gpt", change, map[string]any{"steps": 9})[8:], 1e-5)
}

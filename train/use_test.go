package train_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// evaluated scores a model and fails where that does.
func evaluated(t *testing.T, c train.EvalConfig) (*train.Result, *traintest.Recorder) {
	t.Helper()
	seen := &traintest.Recorder{}
	c.Device, c.Watch = "cpu", seen
	r, err := train.Evaluate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, seen
}

// TestEvalNamesTheSet: a score says what of, and the weights inside a run folder are scored on what the run held out, as
// the folder is.
func TestEvalNamesTheSet(t *testing.T) {
	data, tokens := traintest.Pictures(t, 50, 1, 8, 3), traintest.IDs(t, 400)
	for name, c := range map[string]struct {
		change map[string]any
		eval   train.EvalConfig
		set    string
		held   int
		note   string
	}{
		"pictures":   {map[string]any{"task": "digits", "data": data, "batch": 8}, train.EvalConfig{}, "the last tenth of " + data, 5, ""},
		"skipped":    {map[string]any{"task": "digits", "data": data, "batch": 8}, train.EvalConfig{Skip: 2}, "the last tenth of " + data + " without its first 2", 3, ""},
		"given":      {map[string]any{"task": "digits", "data": data, "batch": 8}, train.EvalConfig{Data: data}, "all of " + data, 50, "trained on"},
		"sequential": {map[string]any{"task": "mlp", "data": data, "batch": 8, "order": "sequential"}, train.EvalConfig{}, "all of " + data, 50, "trained on"},
		"drawn":      {map[string]any{"task": "digits", "batch": 4}, train.EvalConfig{}, "the test set of drawn digits", 2000, ""},
		"tokens":     {map[string]any{"task": "gpt", "tokens": tokens, "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 8, "batch": 2}, train.EvalConfig{}, "the last tenth of " + tokens, 39, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.change["steps"] = 2
			run := traintest.Config(t, c.change["task"].(string), c.change)
			run.Out = filepath.Join(t.TempDir(), "run")
			traintest.Run(t, run)
			var losses []float64
			for _, from := range []string{run.Out, run.Out + "/model.safetensors"} {
				c.eval.From = from
				r, seen := evaluated(t, c.eval)
				if r.Set != c.set || r.Held != c.held {
					t.Errorf("%s is scored on %d of %q, want %d of %q", from, r.Held, r.Set, c.held, c.set)
				}
				if notes := strings.Join(seen.Notes, "\n"); strings.Contains(notes, "trained on") != (c.note != "") {
					t.Errorf("%s: notes %q", from, notes)
				}
				losses = append(losses, r.Loss)
			}
			if losses[0] != losses[1] {
				t.Errorf("the folder has loss %v, its weights %v", losses[0], losses[1])
			}
		})
	}
}

// TestWeightsOfAnUnfinishedRun: the weights in a run folder are scored when they are asked for, and not a checkpoint; a
// file elsewhere is nobody's.
func TestWeightsOfAnUnfinishedRun(t *testing.T) {
	data := traintest.Pictures(t, 50, 1, 8, 3)
	c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 8, "steps": 2})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	want, _ := evaluated(t, train.EvalConfig{From: c.Out})
	log := traintest.Read(t, c.Out+"/log.jsonl")
	if err := os.WriteFile(c.Out+"/log.jsonl", []byte(log[:strings.LastIndex(strings.TrimSpace(log), "\n")+1]), 0o666); err != nil {
		t.Fatal(err)
	}
	if r, _ := evaluated(t, train.EvalConfig{From: c.Out + "/model.safetensors"}); r.Loss != want.Loss || r.Steps != 0 {
		t.Errorf("loss %v at step %d, want %v", r.Loss, r.Steps, want.Loss)
	}
	elsewhere := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(elsewhere, []byte(traintest.Read(t, c.Out+"/model.safetensors")), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := train.Evaluate(t.Context(), train.EvalConfig{From: elsewhere, Device: "cpu"})
	if err == nil || !strings.Contains(err.Error(), elsewhere) {
		t.Errorf("weights of pictures of 8×8, on digits of 28×28: %v", err)
	}
}

// TestShorterContext: a published model learns from windows shorter than its positions, keeps all of these, and goes on,
// is scored and resumed so; a longer window is an error.
func TestShorterContext(t *testing.T) {
	tokens := traintest.IDs(t, 400)
	first := traintest.Config(t, "gpt", map[string]any{"tokens": tokens, "vocab": 7, "context": 16, "layers": 1, "heads": 2, "width": 8, "batch": 2, "steps": 1})
	first.Out = filepath.Join(t.TempDir(), "first")
	traintest.Run(t, first)
	run := func(out string, change map[string]any) (*train.Result, *traintest.Recorder) {
		change["tokens"], change["init"], change["batch"] = tokens, first.Out, 2
		c := traintest.Config(t, "gpt", change)
		c.Out = out
		return traintest.Run(t, c)
	}
	dir := t.TempDir()
	_, long := run(dir+"/long", map[string]any{"steps": 4})
	short, seen := run(dir+"/short", map[string]any{"steps": 4, "context": 4, "eval-every": 2})
	if long.Steps[0].Loss == seen.Steps[0].Loss || !strings.Contains(short.Model, "context 16") {
		t.Errorf("%s: loss %v, with the whole context %v", short.Model, seen.Steps[0].Loss, long.Steps[0].Loss)
	}
	if at := tensors(t, dir+"/short/model.safetensors")["transformer.wpe.weight"]; at == nil || at.Dim(0) != 16 {
		t.Errorf("positions: %v", at)
	}
	if r, _ := evaluated(t, train.EvalConfig{From: dir + "/short"}); r.Loss != *short.ValLoss {
		t.Errorf("scored %v, at the end of the run %v", r.Loss, *short.ValLoss)
	}
	run(dir+"/parts", map[string]any{"steps": 2, "context": 4, "eval-every": 2})
	again := traintest.Config(t, "gpt", map[string]any{"steps": 4})
	again.Out, again.Resume = dir+"/parts", true
	traintest.Run(t, again)
	if traintest.Read(t, dir+"/parts/model.safetensors") != traintest.Read(t, dir+"/short/model.safetensors") {
		t.Error("2 and 2 steps end elsewhere than 4")
	}
	c := traintest.Config(t, "gpt", map[string]any{"tokens": tokens, "init": first.Out, "context": 17})
	if _, err := train.Run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "17") || !strings.Contains(err.Error(), "16") {
		t.Errorf("a longer context: %v", err)
	}
}

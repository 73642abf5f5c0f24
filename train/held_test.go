package train_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestScoreOfEveryToken: all tokens but the first are foretold, also those that fill no row. The reference takes the rows
// one by one and the softmax in float64.
func TestScoreOfEveryToken(t *testing.T) {
	c := traintest.Config(t, "gpt", map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 8, "batch": 2, "steps": 1})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	g := model.NewGPT(env, model.GPTConfig{Vocab: 7, Context: 8, Layers: 1, Heads: 2, Width: 8})
	if err := ckpt.LoadModel(filepath.Join(c.Out, "model.safetensors"), g); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 5, 9, 10, 24, 25, 30} {
		var sum float64
		for from := 0; from < n-1; from += 8 {
			row := make([]int64, min(8, n-1-from))
			for i := range row {
				row[i] = int64((from + i) * (from + i) % 7)
			}
			logits := g.Forward(tensor.From(env.NoGrad().Eval(), row, 1, len(row))).Floats()
			for i := range row {
				total := 0.0
				for _, v := range logits[7*i : 7*i+7] {
					total += math.Exp(v)
				}
				target := (from + i + 1) * (from + i + 1) % 7
				sum += math.Log(total) - logits[7*i+target]
			}
		}
		r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Tokens: traintest.IDs(t, n)})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "loss", r.Loss, sum/float64(n-1), 1e-5)
	}
}

// TestLongText: of much text that is held out a run scores a part, and says so.
func TestLongText(t *testing.T) {
	c := traintest.Config(t, "gpt", map[string]any{"tokens": traintest.IDs(t, 10*205*2048), "vocab": 7, "context": 1024, "layers": 1, "heads": 1, "width": 2, "batch": 1, "steps": 1})
	c.Device = "null:t4" // opens the same data and computes nothing
	_, seen := traintest.Run(t, c)
	if seen.Started.Train+seen.Started.Test != 10*205*2048-1 || seen.Started.Test != 205*2048-1 || seen.Started.Scored != 400*1024 || seen.Started.Units != "tokens" || !seen.Started.Tenth {
		t.Errorf("%d held out, %d of them scored", seen.Started.Test, seen.Started.Scored)
	}
}

// TestBadData: an error of the data in the middle of a run keeps the steps before.
func TestBadData(t *testing.T) {
	path := traintest.IDs(t, 400)
	raw := []byte(traintest.Read(t, path))
	raw[2*100] = 99
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	c := traintest.Config(t, "gpt", map[string]any{"tokens": path, "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 8, "batch": 2, "steps": 20, "order": "sequential"})
	c.Out = filepath.Join(t.TempDir(), "run")
	_, err := train.Run(t.Context(), c, nil)
	var known *train.Error
	if !errors.As(err, &known) || !strings.Contains(known.Text, "99") || !strings.Contains(known.Hint, "--resume") {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Out, "checkpoint-6", "manifest.json")); err != nil {
		t.Error(err)
	}
	if r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Tokens: traintest.IDs(t, 30)}); err != nil || r.Steps != 6 {
		t.Errorf("evaluated: %+v, %v", r, err)
	}
}

// TestCutOff: of a run that was killed the newest checkpoint is scored, with its running mean.
func TestCutOff(t *testing.T) {
	c := traintest.Config(t, "digits", map[string]any{"data": traintest.Pictures(t, 50, 1, 8, 3), "batch": 8, "steps": 20})
	c.Out = filepath.Join(t.TempDir(), "run")
	want, _ := traintest.Run(t, c)
	log := traintest.Read(t, c.Out+"/log.jsonl")
	cut := strings.LastIndex(strings.TrimSpace(log), "\n") + 1 // the end
	if err := errors.Join(os.WriteFile(c.Out+"/log.jsonl", []byte(log[:cut]), 0o666), os.Remove(c.Out+"/model.safetensors")); err != nil {
		t.Fatal(err)
	}
	watch := &traintest.Recorder{}
	r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	if r.Steps != 20 || len(watch.Notes) != 1 || !strings.Contains(watch.Notes[0], "step 20 of 20") {
		t.Errorf("step %d, notes %q", r.Steps, watch.Notes)
	}
	within(t, "loss", r.Loss, *want.ValLoss, 1e-12)
}

// TestSessions counts the steps of a session apart from all.
func TestSessions(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 5})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	c.Resume, c.Steps = true, 7
	r, seen := traintest.Run(t, c)
	var ms float64
	for _, s := range seen.Steps {
		ms += s.MS
	}
	if r.Steps != 7 || r.Session != 2 || math.Abs(r.Stepping-ms/1e3) > 1e-12 || r.Held != 4 {
		t.Errorf("%d steps, %d of this session in %v s, %d held out", r.Steps, r.Session, r.Stepping, r.Held)
	}
}

// TestTaken tells a folder that exists from other errors.
func TestTaken(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 1})
	c.Out = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Out, "notes"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := train.Run(context.Background(), c, nil)
	var known *train.Error
	if !errors.Is(err, fs.ErrExist) || !errors.As(err, &known) || strings.Contains(known.Hint, "--resume") {
		t.Errorf("error %v", err)
	}
}

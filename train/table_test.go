package train_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestTabular: a number and classes are foretold within a point of scikit-learn's MLP and better than by its linear models, by
// the same rows of a table with missing values and categories.
func TestTabular(t *testing.T) {
	var golden map[string]json.RawMessage
	if err := json.Unmarshal([]byte(traintest.Read(t, "testdata/cars/scikit-learn.json")), &golden); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"price", "sold"} {
		var want struct {
			Metric      string
			Linear, MLP float64
		}
		if err := json.Unmarshal(golden[target], &want); err != nil {
			t.Fatal(err)
		}
		c := traintest.Config(t, "tabular", map[string]any{"data": traintest.Cars, "target": target})
		c.Out = filepath.Join(t.TempDir(), "run")
		r, _ := traintest.Run(t, c)
		e, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Data: traintest.CarsTest})
		if err != nil {
			t.Fatal(err)
		}
		got := e.Metrics[want.Metric]
		t.Logf("%s: %s %.4f, scikit-learn's MLP %.4f, linear %.4f; %d steps", target, want.Metric, got, want.MLP, want.Linear, r.Steps)
		if got < want.MLP-.01 || got <= want.Linear {
			t.Errorf("%s: %s %.4f, scikit-learn's MLP %.4f, linear %.4f", target, want.Metric, got, want.MLP, want.Linear)
		}
		again, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "what was held out, scored again", again.Metrics[want.Metric], r.Metrics[want.Metric], 1e-9)
		within(t, "its loss", again.Loss, *r.ValLoss, 1e-9)
	}
}

// TestPatience: a run ends by its scores, with the weights of the best of them, and where one that was interrupted on its way, goes on
// to the same end.
func TestPatience(t *testing.T) {
	change := map[string]any{"data": traintest.Cars, "target": "sold", "patience": 2, "eval-every": 20, "save-every": 0}
	c := traintest.Config(t, "tabular", change)
	c.Out = filepath.Join(t.TempDir(), "whole")
	r, _ := traintest.Run(t, c)
	best := r.Scores[0]
	for _, s := range r.Scores[:len(r.Scores)-1] {
		if s.ValLoss < best.ValLoss {
			best = s
		}
	}
	if r.Steps != best.Step+40 || *r.ValLoss != best.ValLoss {
		t.Errorf("ended after step %d with a loss of %v; the best was %v at step %d", r.Steps, *r.ValLoss, best.ValLoss, best.Step)
	}
	for _, first := range []int{best.Step, best.Step + 5, best.Step + 20} {
		parts := traintest.Config(t, "tabular", change)
		parts.Out, parts.Steps, parts.Given["steps"] = filepath.Join(t.TempDir(), "parts"), first, true
		traintest.Run(t, parts)
		again := train.Config{Out: parts.Out, Resume: true, Steps: r.Steps + 100, Given: map[string]bool{"steps": true}}
		if q, _ := traintest.Run(t, again); q.Steps != r.Steps || *q.ValLoss != *r.ValLoss {
			t.Errorf("interrupted after step %d: ended after step %d with a loss of %v, not step %d with %v", first, q.Steps, *q.ValLoss, r.Steps, *r.ValLoss)
		}
		if traintest.Read(t, parts.Out+"/model.safetensors") != traintest.Read(t, c.Out+"/model.safetensors") {
			t.Errorf("interrupted after step %d: other weights", first)
		}
	}
}

// TestTabularRefusals: what cannot be learned from is an error that says where and what to do, and leaves no folder.
func TestTabularRefusals(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := "a,b,y\n1,x,2\n2,y,3\n3,x,5\n4,y,1\n"
	for _, c := range []struct {
		name       string
		change     map[string]any
		text, hint string
	}{
		{"no data", map[string]any{"target": "y"}, "no table", "--data"},
		{"no target", map[string]any{"data": write("a.csv", good)}, "which column", "--target"},
		{"another target", map[string]any{"data": write("a.csv", good), "target": "Y"}, `no column "Y"`, "y"},
		{"another objective", map[string]any{"data": write("a.csv", good), "target": "y", "objective": "ranking"}, "ranking", "classification"},
		{"ragged", map[string]any{"data": write("a.csv", good+"5,x\n"), "target": "y"}, "line 6", ""},
		{"UTF-16", map[string]any{"data": write("a.csv", "\xff\xfea\x00,\x00y\x00\n\x00"), "target": "y"}, "UTF-16", "iconv"},
		{"Latin-1", map[string]any{"data": write("a.csv", "a,y\nK\xf6ln,1\nBonn,2\n"), "target": "y"}, "line 2", "UTF-8"},
		{"constant", map[string]any{"data": write("a.csv", "a,y\n1,7\n2,7\n3,7\n"), "target": "y"}, "nothing to learn", "another target"},
		{"missing", map[string]any{"data": write("a.csv", "a,y\n1,\n2,\n3,1\n"), "target": "y"}, "1 of its 3 rows", "fill it in"},
		{"texts as numbers", map[string]any{"data": write("a.csv", good), "target": "b", "objective": "regression"}, "texts", ""},
		{"no such column to drop", map[string]any{"data": write("a.csv", good), "target": "y", "drop": "c"}, `no column "c"`, ""},
		{"nothing left", map[string]any{"data": write("a.csv", good), "target": "y", "drop": "a, b"}, "no column is an input", ""},
		{"target of a picture's task", nil, "--target is for tabular", "leave --target out"},
		{"patience without a score", map[string]any{"data": write("a.csv", good), "target": "y", "order": "sequential", "patience": 2}, "holds nothing out", "--patience"},
	} {
		task := "tabular"
		if c.change == nil {
			task, c.change = "mlp", map[string]any{"target": "y"}
		}
		run := traintest.Config(t, task, c.change)
		run.Out = filepath.Join(t.TempDir(), "run")
		_, err := train.Run(t.Context(), run, nil)
		var known *advice.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%s: %v", c.name, err)
			if known != nil {
				t.Errorf("hint: %s", known.Hint)
			}
		}
		if _, err := os.Stat(run.Out); err == nil {
			t.Errorf("%s: a folder is left", c.name)
		}
	}
}

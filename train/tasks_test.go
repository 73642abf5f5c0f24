package train_test

import (
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestTasks: what the tasks of drawn data come to in a short training, and that eval says the same of them.
func TestTasks(t *testing.T) {
	for _, c := range []struct {
		task   string
		change map[string]any
		metric string
		least  float64
	}{
		{"triage", map[string]any{"steps": 60, "average": 0.9}, "accuracy", .8}, // a third is right by chance
	} {
		run := traintest.Config(t, c.task, c.change)
		run.Out = filepath.Join(t.TempDir(), "run")
		r, _ := traintest.Run(t, run)
		if r.Metrics[c.metric] < c.least {
			t.Errorf("%s: %s %.4f", c.task, c.metric, r.Metrics[c.metric])
		}
		e, err := train.Evaluate(t.Context(), train.EvalConfig{From: run.Out})
		if err != nil {
			t.Fatal(err)
		}
		within(t, c.task+", scored again", e.Metrics[c.metric], r.Metrics[c.metric], 1e-9)
		if err := train.Predict(t.Context(), train.PredictConfig{From: run.Out, Inputs: []string{"x.png"}}, nil); err == nil {
			t.Errorf("%s: predicts from nothing", c.task)
		}
		other := traintest.Config(t, c.task, map[string]any{"data": "x.csv"})
		if _, err := train.Run(t.Context(), other, nil); err == nil {
			t.Errorf("%s learns from a table", c.task)
		}
	}
}

package train_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestAnomaly: the run names the operation and the line of the model, and what it computes is what it computes without.
func TestAnomaly(t *testing.T) {
	run := func(anomaly bool, lr float64, amp string, batch int) (*train.Result, *traintest.Recorder, error) {
		c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": batch, "steps": 24, "optimizer": "sgd", "lr": lr, "amp": amp, "anomaly": anomaly})
		c.Out = filepath.Join(t.TempDir(), "run")
		seen := &traintest.Recorder{}
		r, err := train.Run(t.Context(), c, seen)
		return r, seen, err
	}
	_, _, err := run(true, 1e37, "none", 8)
	var a *tensor.Anomaly
	if !errors.As(err, &a) || a.Op == "" || !strings.Contains(a.Line, ".go:") || !strings.Contains(err.Error(), a.Op) || !strings.Contains(err.Error(), a.Line) {
		t.Errorf("error %v", err)
	}
	_, _, err = run(false, 1e37, "none", 8)
	var known *train.Error
	if !errors.As(err, &known) || !strings.Contains(known.Hint, "--anomaly") {
		t.Errorf("without: %v", err)
	}

	want, _, _ := run(false, 3, "fp16", 1)
	got, seen, err := run(true, 3, "fp16", 1)
	if err != nil || got.Loss != want.Loss || *got.Left != *want.Left || *got.Left == 0 {
		t.Fatalf("float16: %+v, want %+v: %v", got, want, err)
	}
	if text := strings.Join(seen.Notes, "\n"); !strings.Contains(text, "the gradient of ") || !strings.Contains(text, "which is left out") {
		t.Errorf("notes %q", text)
	}
}

package train_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestCapture: captured runs end where others end, to the bit, also in parts, and with what else steps may be told. Each part
// has a step of its own and two for each kind of batches that is recorded.
func TestCapture(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string]map[string]any{
		"last batch, average": {"task": "digits", "data": traintest.Pictures(t, 50, 1, 8, 3), "batch": 8, "schedule": "cosine", "schedule-steps": 24},
		"amp, parts, recompute": {"task": "gpt", "data": text, "batch": 4, "context": 8, "layers": 1, "heads": 2, "width": 8, "dropout": 0.1, "warmup": 3,
			"clip": 0.5, "amp": true, "accumulate": 2, "recompute": true, "eval-every": 7},
		"drawn codes":      {"task": "vae", "data": traintest.Pictures(t, 50, 1, 8, 3), "batch": 8, "eval-every": 7},
		"areas":            {"task": "unet", "batch": 2, "order": "sequential", "average": 0.9},
		"streams in parts": {"task": "lstm", "data": text, "batch": 4, "context": 16, "width": 8, "dropout": 0.1, "accumulate": 2, "eval-every": 7},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(out string, steps int, capture, resume bool) *train.Result {
				c := traintest.Config(t, settings["task"].(string), settings)
				c.Out, c.Steps, c.Capture, c.Resume = filepath.Join(dir, out), steps, capture, resume
				c.Given["steps"] = true
				r, _ := traintest.Run(t, c)
				return r
			}
			want := run("plain", 24, false, false)
			got := run("captured", 24, true, false)
			if !slices.EqualFunc(got.Log, want.Log, func(a, b train.Step) bool { return a.Loss == b.Loss }) {
				t.Errorf("losses %v, want %v", got.Log, want.Log)
			}
			if want.Captured != 0 || got.Captured < 24-5 {
				t.Errorf("%d of 24 steps captured, and %d of the run without", got.Captured, want.Captured)
			}
			run("parts", 11, true, false)
			if r := run("parts", 24, true, true); r.Captured < 13-5 {
				t.Errorf("%d of 13 steps captured", r.Captured)
			}
			for _, out := range []string{"captured", "parts"} {
				if traintest.Read(t, filepath.Join(dir, out, "model.safetensors")) != traintest.Read(t, filepath.Join(dir, "plain", "model.safetensors")) {
					t.Errorf("%s ends elsewhere", out)
				}
			}
		})
	}
}
